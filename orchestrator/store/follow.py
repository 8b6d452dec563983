"""Opening units: each is named by what it is, so opening one twice gives one row.

Pages: the targets of one answer lie on the page of the unit that answered. Known targets are
handed out by the same pages, so looking one up costs the same for the first and the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.job import Store
from orchestrator.domain.unit import Claimed, Finished, Phase, unit_id
from orchestrator.store import bulk
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import now_us
from orchestrator.store.pages import NOWHERE, OF_ITEMS, JobRound, by_round, pages

_g, _u, _j = t.targets.c, t.units.c, t.jobs.c
_STRIDE = 2**20
_TENANTS: Final = sa.select(_j.id, _j.tenant, now_us().label("now")).where(among(_j.id))


def _after_known() -> sa.Select[Any]:
    """Ask for each unit where the known targets go on: the next page of the same adapter, else the next adapter."""
    of_pass = (_g.job_id == _u.job_id) & (_g.round == _u.round) & (_g.find_pass == _u.find_pass - 1)
    page = sa.select(sa.func.min(_g.page)).where(of_pass, _g.adapter == _u.known_adapter, _g.page > _u.known_page)
    # Said here, because it stands two levels deep: left alone it would look through the units of all jobs.
    adapter = sa.select(sa.func.min(_g.adapter)).where(of_pass, _g.adapter > _u.known_adapter).correlate(t.units)
    later = t.targets.alias()
    first = sa.select(sa.func.min(later.c.page)).where(
        *(later.c[name] == _u[name] for name in ("job_id", "round")),
        later.c.find_pass == _u.find_pass - 1,
        later.c.adapter == adapter.scalar_subquery(),
    )
    return sa.select(
        _u.id,
        _u.known_adapter,
        page.scalar_subquery().label("page"),
        adapter.scalar_subquery().label("next"),
        first.scalar_subquery().label("first"),
    ).where(among(_u.id))


def _highest(table: sa.Table) -> sa.Select[Any]:
    c = table.c
    query = sa.select(c.job_id, c.adapter, sa.func.max(c.page).label("page"))
    query = query.where(among(c.job_id), c.round == sa.bindparam("round"), c.page < OF_ITEMS // 2)
    return query.group_by(c.job_id, c.adapter)


_AFTER_KNOWN: Final = _after_known()
_HIGHEST: Final = (_highest(t.targets), _highest(t.units))


class NewUnit(NamedTuple):
    """A unit to open; `known` is the adapter and page of the known targets that it looks from."""

    job: str
    round: int
    adapter: str
    phase: Phase
    page: int = 0
    find_pass: int = 0
    known: tuple[str, int] | None = None
    item: str | None = None
    cursor: str | None = None


def open_units(
    connection: sa.Connection, wanted: Sequence[NewUnit], stores: Sequence[Store], *, pause_us: int = 0
) -> None:
    """Open units, due after a pause; one that is there stays."""
    if not wanted:
        return
    required = {store.name: int(store.required) for store in stores}
    found = connection.execute(_TENANTS, {"ids": {new.job for new in wanted}}).all()
    tenants = {row.id: row.tenant for row in found}
    # Whatever is opened together is due together, by the database's clock.
    due = max(row.now for row in found) + pause_us
    rows = [
        {
            "tenant": tenants[new.job],
            "id": str(unit_id(UUID(new.job), new.adapter, new.phase, new.page, new.round)),
            "job_id": new.job,
            "adapter": new.adapter,
            "phase": new.phase.value,
            "page": new.page,
            "round": new.round,
            "find_pass": new.find_pass,
            "known_adapter": NOWHERE if new.known is None else new.known[0],
            "known_page": 0 if new.known is None else new.known[1],
            "item_ref": new.item,
            "cursor": new.cursor,
            "required": required[new.adapter],
            "next_attempt_at_us": due,
        }
        for new in wanted
    ]
    bulk.insert(connection, t.units, rows, conflict=bulk.KEEP)


def open_find(
    connection: sa.Connection, jobs: Sequence[tuple[JobRound, Sequence[str]]], find_pass: int, stores: Sequence[Store]
) -> None:
    """Open the first unit of a pass behind every page that is in use: a find's page becomes that of its targets."""
    rounds = [job for job, _ in jobs]
    used, known = _used(connection, rounds), _first_known(connection, rounds, find_pass - 1)
    open_units(
        connection,
        [
            NewUnit(job, round_, a, Phase.FIND, used[job, a] + 1, find_pass, known.get(job))
            for (job, round_), adapters in jobs
            for a in adapters
        ],
        stores,
    )


def next_pages(connection: sa.Connection, done: Sequence[Finished], stores: Sequence[Store]) -> None:
    """Open the page after a find or revoke that has more to tell, or more known targets to look from."""
    finds = [a.claimed for a in done if a.claimed.phase is Phase.FIND and a.cursor is None]
    # A find that follows a freed item looks from that item's page alone.
    following = _known_after(connection, [unit for unit in finds if unit.known_from is not None and unit.item is None])
    wanted = []
    for answer in done:
        unit, known = answer.claimed, answer.claimed.known_from
        if answer.cursor is None:
            known = following.get(unit.order.key)
            if known is None:
                continue
        job, page = (str(unit.order.job), unit.order.round), unit.page + 1
        wanted.append(NewUnit(*job, unit.adapter, unit.phase, page, unit.find_pass, known, unit.item, answer.cursor))
    open_units(connection, wanted, stores)


def after_holds(connection: sa.Connection, done: Sequence[Finished], stores: Sequence[Store]) -> None:
    """Let revoke be asked again for the items that it left; look for what was made from an item once it is revoked."""
    wanted: list[NewUnit] = []
    for answer in done:
        unit = answer.claimed
        if answer.left:  # with the first page already: a restore asks what was left as soon as its marks are known
            wanted += _left(connection, unit, answer.left)
        asked = unit.item is not None and unit.phase in {Phase.REVOKE, Phase.FIND}
        if asked and _has_targets(connection, unit):
            job = (str(unit.order.job), unit.order.round)
            used, known = _used(connection, [job]), (unit.adapter, unit.page)
            wanted += [
                NewUnit(*job, s.name, Phase.FIND, used[job[0], s.name] + 1, unit.find_pass + 1, known, unit.item)
                for s in stores
            ]
    open_units(connection, wanted, stores)


def _has_targets(connection: sa.Connection, unit: Claimed) -> bool:
    """Tell whether a unit's page has targets: a source that is asked again names all of its others once more."""
    mine = (_g.job_id == str(unit.order.job)) & (_g.round == unit.order.round) & (_g.adapter == unit.adapter)
    query = sa.select(_g.page).where(mine, _g.page == unit.page).limit(1)
    return connection.execute(query).scalar() is not None


def _left(connection: sa.Connection, unit: Claimed, items: Iterable[str]) -> list[NewUnit]:
    job, round_ = str(unit.order.job), unit.order.round
    query = sa.select(_u.item_ref, _u.page, _u.status)
    query = query.where(_u.job_id == job, _u.adapter == unit.adapter, _u.phase == Phase.REVOKE.value)
    rows = connection.execute(query).all()
    waiting = {row.item_ref for row in rows if row.status != "done"}
    # Each item's pages begin at a number of their own: asking for one may take many pages.
    first = max(row.page for row in rows) // _STRIDE + 1
    return [
        NewUnit(job, round_, unit.adapter, Phase.REVOKE, (first + n) * _STRIDE, item=item)
        for n, item in enumerate(sorted(set(items) - waiting))
    ]


def _known_after(connection: sa.Connection, units: Sequence[Claimed]) -> Mapping[str, tuple[str, int]]:
    """Give for each find unit the adapter and page of the known targets that come after its own."""
    if not units:
        return {}
    found: dict[str, tuple[str, int]] = {}
    for row in connection.execute(_AFTER_KNOWN, {"ids": [unit.order.key for unit in units]}).all():
        if row.page is not None:
            found[row.id] = (row.known_adapter, row.page)
        elif row.next is not None:
            found[row.id] = (row.next, row.first)
    return found


def _used(connection: sa.Connection, jobs: Sequence[JobRound]) -> Mapping[tuple[str, str], int]:
    """Give the highest page in use of each job and adapter, -1 for none; pages of held items are numbered apart."""
    used: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    for query in _HIGHEST:
        for round_, ids in by_round(jobs):
            for row in connection.execute(query, {"ids": ids, "round": round_}).all():
                used[row.job_id, row.adapter] = max(used[row.job_id, row.adapter], row.page)
    return used


def _first_known(connection: sa.Connection, jobs: Sequence[JobRound], find_pass: int) -> Mapping[str, tuple[str, int]]:
    first: dict[str, tuple[str, int]] = {}
    for job, found in pages(connection, jobs).items():
        of_pass = [page for page in found if page.find_pass == find_pass]
        if of_pass:
            first[job] = (of_pass[0].adapter, of_pass[0].number)
    return first
