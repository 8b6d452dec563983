"""Building the orders of claimed units, right before the call: what is held is read now, not at the claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, Reason
from orchestrator.domain.contract import EraseOrder, Target
from orchestrator.domain.hold import covered
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.domain.unit import Claimed, Phase, unit_id
from orchestrator.store import bulk, epochs, holds, windows
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import moment, read_now
from orchestrator.store.jobs import read_kind
from orchestrator.store.pages import NOWHERE, OF_ITEMS, pages
from orchestrator.store.units import give_back

MAX_ROUNDS: Final = 5
_u, _j, _g, _a = t.units.c, t.jobs.c, t.targets.c, t.attempts.c
_OURS: Final[sa.Select[Any]] = (
    sa.select(
        *(_u.id, _u.job_id, _u.adapter, _u.phase, _u.page, _u.round, _u.find_pass, _u.item_ref, _u.required),
        *(_u.known_adapter, _u.known_page, _u.cursor, _u.attempts, _u.fence, _u.deadline_us),
        *(_j.tenant.label("whose"), _j.user_id, _j.project, _j.selector_kind, _j.selector_value),
        *(_j.trigger_kind, _j.revision, _j.reason_code, _j.subject_ref),
    )
    .join(t.jobs, _j.id == _u.job_id)
    .where(among(_u.id), _u.status == t.RUNNING, _u.lease_owner == sa.bindparam("owner"))
    .order_by(_u.id)
)
_UNREVOKED: Final = sa.select(_u.job_id, _u.item_ref).where(
    *(among(_u.job_id), _u.phase == Phase.REVOKE.value, _u.status != t.DONE, _u.item_ref.is_not(None))
)
_OF_TARGETS: Final = {Phase.ERASE.value, Phase.VERIFY.value}
_FOUND_IN = sa.case((_u.phase == Phase.FIND.value, _u.find_pass - 1), else_=0)
_OWN = (_g.job_id == _u.job_id) & (_g.adapter == _u.adapter) & (_g.round == _u.round) & (_g.page == _u.page)
_KNOWN = (
    (_g.job_id == _u.job_id)
    & (_g.adapter == _u.known_adapter)
    & (_g.round == _u.round)
    & (_g.page == _u.known_page)
    & (_g.find_pass == _FOUND_IN)
)
_HANDLES = sa.select(_u.id, _g.kind, _g.handle, _g.version, _g.derived_of).where(among(_u.id))
_OWN_TARGETS: Final = _HANDLES.join(t.targets, _OWN)
_KNOWN_TARGETS: Final = _HANDLES.join(t.targets, _KNOWN)
# A person who has such a unit tried again asks for another round.
_SEEN_AGAIN: Final = sa.select(_a.unit_id).where(among(_a.unit_id), _a.error_code == ErrorCode.STILL_PRESENT.value)
_IN_ORDER: Final = attrgetter("kind", "id", "version")


def load(connection: sa.Connection, owner: str, ids: Sequence[str]) -> list[Claimed]:
    """Build the orders of the units that `owner` still holds; those under a hold by now are given back."""
    rows = connection.execute(_OURS, {"ids": ids, "owner": owner}).all()
    held: dict[str, set[str | None]] = defaultdict(set)
    for job, item in holds.active(connection, [row.job_id for row in rows]):
        held[job].add(item)
    # The raw ids of a job that has ended meanwhile are gone: an optional store came too late.
    closing = [r for r in rows if r.phase == Phase.CLOSE.value]
    kept = {r.id for r in rows if r.user_id is None or not held[r.job_id].isdisjoint((None, r.item_ref))}
    kept -= {r.id for r in closing}  # only looked at: it names nobody, and no hold is against it
    if kept:
        give_back(connection, kept)
        rows = [row for row in rows if row.id not in kept]
    _look_from(connection, rows)
    unrevoked = _unrevoked(connection, [row.job_id for row in rows if row.phase == Phase.ERASE.value])
    own = _targets(connection, _OWN_TARGETS, [row.id for row in rows if row.phase in _OF_TARGETS])
    known = _targets(connection, _KNOWN_TARGETS, [row.id for row in rows if row.known_adapter != NOWHERE])
    copies = windows.of_units(connection, closing)
    waiting = windows.scheduled(connection, [row.job_id for row in rows if row.phase == Phase.VERIFY.value])
    began = epochs.of_all(connection)
    last = _of_the_last_round(connection, rows)
    claimed = []
    for row in rows:
        items = {item for item in held[row.job_id] if item is not None}
        mine, apart = copies.get(row.id, own[row.id]), items | unrevoked[row.job_id]
        if apart and row.phase == Phase.ERASE.value and row.item_ref is None:
            mine = _set_apart(connection, row, mine, apart)
        claimed.append(
            _claimed(
                *(row, mine, known[row.id], items, waiting.get((row.job_id, row.adapter), ()), began),
                last_round=row.id in last,
            )
        )
    return claimed


def _of_the_last_round(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> Collection[str]:
    """Name the units after which no round follows by itself: the last one's, until a person has them tried again."""
    last = {row.id for row in rows if row.round >= MAX_ROUNDS and row.phase == Phase.VERIFY.value}
    if last:
        last -= set(connection.execute(_SEEN_AGAIN, {"ids": list(last)}).scalars())
    return last


def _look_from(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> None:
    """Say from which page units look that a worker of release 0001 has opened: it knew pages by their place alone."""
    old = [row for row in rows if row.known_adapter is None]
    old = [row for row in old if row.phase == Phase.VERIFY.value or (row.phase == Phase.FIND.value and row.find_pass)]
    found = pages(connection, [(row.job_id, row.round) for row in old]) if old else {}
    told = []
    for row in old:
        of_pass = row.find_pass - 1 if row.phase == Phase.FIND.value else 0
        known = [page for page in found.get(row.job_id, []) if page.find_pass == of_pass]
        # A find begins again with the first page and goes on by itself; a look has one page of its own.
        place = 0 if row.phase == Phase.FIND.value else row.page
        here = known[place] if place < len(known) else None
        page = {"known_adapter": NOWHERE, "known_page": 0}
        if here is not None:
            page = {"known_adapter": here.adapter, "known_page": here.number}
        told.append({"id": row.id, **page})
    bulk.update(connection, t.units, "id", told)


def _unrevoked(connection: sa.Connection, jobs: Sequence[str]) -> Mapping[str, set[str]]:
    """Name the items that a source has left and not revoked yet: erasing one first would leave nothing to look from."""
    left: dict[str, set[str]] = defaultdict(set)
    if jobs:
        for job, item in connection.execute(_UNREVOKED, {"ids": jobs}).all():
            left[job].add(item)
    return left


def _claimed(
    row: sa.Row[Any],
    own: Iterable[Target],
    known: Iterable[Target],
    held: Collection[str],
    scheduled: Iterable[str],
    began: Mapping[str, int],
    *,
    last_round: bool,
) -> Claimed:
    order = EraseOrder(
        job=UUID(row.job_id),
        unit=UUID(row.id),
        key=row.id,
        # The raw ids of a verified job are gone: what is closed is told by its handle.
        scope=Scope(tenant=row.whose, user=row.user_id or row.subject_ref, project=row.project),
        selector=_selector(row),
        known=tuple(known),
        cursor=row.cursor,
        targets=tuple(own),
        revision=row.revision,
        held=frozenset(held),
        scheduled=frozenset(scheduled),
        attempt=row.attempts,
        round=row.round,
        fence=row.fence,
        deadline=moment(row.deadline_us),
    )
    return Claimed(
        order=order,
        adapter=row.adapter,
        reason=Reason(row.reason_code),
        phase=Phase(row.phase),
        page=row.page,
        find_pass=row.find_pass,
        known_from=(row.known_adapter, row.known_page) if row.known_adapter else None,
        item=row.item_ref,
        last_round=last_round,
        epoch=began.get(row.adapter, epochs.FIRST),
    )


def _selector(row: sa.Row[Any]) -> Selector:
    kind = read_kind(row.selector_kind, row.trigger_kind)
    if row.phase == Phase.CLOSE.value:
        return Selector(kind=SelectorKind.SUBJECT)
    return Selector(kind=kind, value=row.selector_value)


def _targets(connection: sa.Connection, query: sa.Select[Any], ids: Sequence[str]) -> Mapping[str, list[Target]]:
    found: dict[str, list[Target]] = defaultdict(list)
    if not ids:
        return found
    for unit, kind, handle, version, derived_of in connection.execute(query, {"ids": ids}).all():
        found[unit].append(Target(kind=kind, id=handle, version=version, derived_of=derived_of))
    # Sorted here: asked for the order, SQLite goes along the primary key through all targets of the job.
    for targets in found.values():
        targets.sort(key=_IN_ORDER)
    return found


def _set_apart(
    connection: sa.Connection, row: sa.Row[Any], targets: Sequence[Target], items: Collection[str]
) -> list[Target]:
    """Move the targets of held items to pages of their own, whose units wait; give the others."""
    apart: dict[str, list[Target]] = defaultdict(list)
    for target in targets:
        if item := covered(target, items):
            apart[item].append(target)
    for item in sorted(apart):
        page = _page_of(connection, row, item)
        unit = unit_id(UUID(row.job_id), row.adapter, Phase.ERASE, page, row.round)
        place = {"job_id": row.job_id, "adapter": row.adapter, "page": page, "round": row.round, "item_ref": item}
        opened = {**place, "tenant": row.whose, "id": str(unit), "phase": Phase.ERASE.value, "required": row.required}
        due = {"next_attempt_at_us": read_now(connection)}
        bulk.insert(connection, t.units, [{**opened, **due}], conflict=bulk.KEEP)
        for target in apart[item]:
            connection.execute(
                t.targets.update()
                .where(_g.job_id == row.job_id, _g.adapter == row.adapter, _g.round == row.round)
                .where(_g.kind == target.kind, _g.handle == target.id, _g.version == target.version)
                .values(page=page, item_ref=item)
            )
    moved = {target for some in apart.values() for target in some}
    return [target for target in targets if target not in moved]


def _page_of(connection: sa.Connection, row: sa.Row[Any], item: str) -> int:
    """Give the item's page that still waits, or a new one: a unit that has answered takes no more targets."""
    mine = (_u.job_id == row.job_id) & (_u.adapter == row.adapter) & (_u.round == row.round)
    of_items = mine & (_u.phase == Phase.ERASE.value) & _u.item_ref.is_not(None)
    waiting = sa.select(_u.page).where(of_items, _u.item_ref == item, _u.status == t.PENDING)
    page = connection.execute(waiting.limit(1)).scalar_one_or_none()
    if page is not None:
        return int(page)
    lowest = connection.execute(sa.select(sa.func.min(_u.page)).where(of_items)).scalar_one()
    return OF_ITEMS if lowest is None else int(lowest) - 1
