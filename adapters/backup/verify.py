"""Looking again: every file in the folder, named by the manifest or not, by SQL of its own over all orders at once.

Principles: the folder is walked, so a copy that came since find is looked into as well. What
cannot be looked at is never called clean. Left out is only what was scheduled for the very job
and whose window is still open.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final
from uuid import UUID

from adapters.backup import disk
from adapters.backup.errors import Unreadable
from adapters.backup.folder import Folder, handle_of
from adapters.backup.manifest import Manifest
from orchestrator import EraseOrder, Seen, Target

_COLUMNS: Final = ("number", "job", "tenant", "user_id", "project", "kind", "value", "cut_off")
_GIVEN: Final = ", ".join(f"json_extract(o.value, '$[{n}]') AS {name}" for n, name in enumerate(_COLUMNS))
_ORDERS: Final = f"WITH given AS MATERIALIZED (SELECT {_GIVEN} FROM json_each(?) AS o)"  # noqa: S608 - names of ours
_RECORDS: Final = """WITH given AS MATERIALIZED (SELECT json_extract(o.value, '$[0]') AS number,
    json_extract(o.value, '$[1]') AS tenant, json_extract(o.value, '$[2]') AS item,
    json_extract(o.value, '$[3]') AS version, json_extract(o.value, '$[4]') AS kind FROM json_each(?) AS o)"""
# What was accepted after the job's cut-off is no copy of what the job forgot.
_CUT_OFF: Final = "ifnull(given.cut_off, (SELECT r.cut_off FROM source_revocations AS r WHERE r.job = given.job))"
_BEFORE: Final = f"""NOT EXISTS (SELECT 1 FROM accepted_sources AS s
    WHERE s.tenant = given.tenant AND s.source_id = {{0}}.source AND s.position > {_CUT_OFF})"""  # noqa: S608 - ours
_TOLD_BY: Final = """given.kind = 'source' AND given.value IN (SELECT {0}.source UNION ALL
    SELECT a.ancestor_id FROM source_ancestry AS a WHERE a.tenant = given.tenant AND a.source_id = {0}.source)"""
_FACTS: Final = f"""{_ORDERS} SELECT DISTINCT given.number FROM given CROSS JOIN facts AS f
    WHERE f.tenant = given.tenant AND f.user_id = given.user_id AND {_BEFORE.format("f")} AND (
        ({_TOLD_BY.format("f")}) OR (coalesce(given.project, f.project) = f.project AND (given.kind = 'subject'
        OR (given.kind = 'key' AND f.key = given.value) OR (given.kind = 'memory' AND f.fact_id = given.value))))
"""  # noqa: S608 - texts of ours
_FACTS_KNOWN: Final = f"""{_RECORDS} SELECT DISTINCT given.number FROM given CROSS JOIN facts AS f
    WHERE f.fact_id = given.item AND f.version = given.version AND f.tenant = given.tenant
"""  # noqa: S608 - as above
# A memory that names no tenant may be anybody's.
_OWNED: Final = """LEFT JOIN memory_tenants AS t ON t.memory_id = m.id
    WHERE coalesce(t.tenant, given.tenant) = given.tenant"""
_MEMORIES: Final = f"""{_ORDERS} SELECT DISTINCT given.number FROM given CROSS JOIN memories AS m {_OWNED}
    AND m.user_id = given.user_id AND {_BEFORE.format("m")} AND (
        ({_TOLD_BY.format("m")}) OR (coalesce(given.project, m.task_id) IS m.task_id AND (given.kind = 'subject'
        OR (given.kind = 'memory' AND CAST(m.id AS TEXT) = given.value))))
"""  # noqa: S608 - as above
_MEMORIES_KNOWN: Final = f"""{_RECORDS} SELECT DISTINCT given.number FROM given CROSS JOIN memories AS m {_OWNED}
    AND m.id = given.version
"""  # noqa: S608 - as above
_EVENTS: Final = f"""{_ORDERS} SELECT DISTINCT given.number FROM given CROSS JOIN preference_events AS e
    WHERE e.tenant = given.tenant AND e.user_id = given.user_id AND {_BEFORE.format("e")} AND (
        ({_TOLD_BY.format("e")}) OR (coalesce(given.project, e.project) = e.project AND (given.kind = 'subject'
        OR (given.kind = 'key' AND e.key = given.value) OR (given.kind = 'memory' AND e.handle = given.value))))
"""  # noqa: S608 - as above
# What holds by an event may outlive it.
_EVENTS_KNOWN: Final = f"""{_RECORDS} SELECT given.number FROM given CROSS JOIN preference_events AS e
    WHERE given.kind = 'event' AND e.tenant = given.tenant AND e.handle = given.item AND e.sequence = given.version
    UNION SELECT given.number FROM given CROSS JOIN preferences AS p
    WHERE given.kind = 'event' AND p.tenant = given.tenant AND p.handle = given.item AND p.value IS NOT NULL
"""  # noqa: S608 - as above
_CANDIDATES: Final = f"""{_ORDERS} SELECT DISTINCT given.number FROM given CROSS JOIN fact_candidates AS c
    WHERE c.tenant = given.tenant AND c.user_id = given.user_id AND {_BEFORE.format("c")} AND (
        ({_TOLD_BY.format("c")}) OR (given.kind = 'source' AND given.value IN (SELECT c.decided_in UNION ALL
        SELECT a.ancestor_id FROM source_ancestry AS a WHERE a.tenant = given.tenant AND a.source_id = c.decided_in))
        OR (coalesce(given.project, c.project) = c.project AND (given.kind = 'subject'
        OR (given.kind = 'key' AND c.key = given.value) OR (given.kind = 'memory' AND (c.handle = given.value
        OR given.value IN (SELECT f.fact_id FROM facts AS f WHERE f.tenant = c.tenant AND f.user_id = c.user_id
            AND f.project = c.project AND f.key = c.key))))))
"""  # noqa: S608 - as above
_CANDIDATES_KNOWN: Final = f"""{_RECORDS} SELECT given.number FROM given CROSS JOIN fact_candidates AS c
    WHERE given.kind = 'candidate' AND c.tenant = given.tenant AND c.handle = given.item
"""  # noqa: S608 - as above
# What was made from a record that goes is a copy of it; whose it is does not matter then.
_DRAFTS: Final = f"""{_ORDERS} SELECT DISTINCT given.number FROM given CROSS JOIN drafts AS d
    WHERE given.kind = 'subject' AND d.tenant = given.tenant AND d.user_id = given.user_id
    AND coalesce(given.project, d.project) = d.project
    AND ifnull(d.position > {_CUT_OFF}, 0) = 0
"""  # noqa: S608 - as above
_DRAFTS_KNOWN: Final = f"""{_RECORDS} SELECT given.number FROM given CROSS JOIN drafts AS d
    WHERE given.kind = 'draft' AND d.tenant = given.tenant AND d.handle = given.item
    UNION SELECT given.number FROM given CROSS JOIN draft_used AS u CROSS JOIN drafts AS d
    WHERE u.tenant = given.tenant AND u.kind = given.kind AND u.id = given.item
    AND (u.version = given.version OR 0 IN (u.version, given.version)) AND d.tenant = u.tenant AND d.handle = u.handle
"""  # noqa: S608 - as above


def verify(
    folder: Folder,
    known: Manifest,
    orders: Sequence[EraseOrder],
    scheduled: Mapping[UUID, set[str]],
    cut_offs: Mapping[UUID, int],
    in_time: Callable[[], None],
) -> list[Seen]:
    """Count for each order the files that still hold what it names.

    `scheduled` are open windows by job, `cut_offs` the last positions that the jobs reach, as the source has them.
    """
    handles = {copy.file: copy.handle for copy in known.copies}
    remaining, dark = [0] * len(orders), [False] * len(orders)
    for name in folder.files():
        in_time()
        handle = handles.get(name) or handle_of(name)
        asked = [n for n, order in enumerate(orders) if handle not in scheduled.get(order.job, ())]
        try:
            for number in _holding(folder, name, orders, asked, cut_offs) if asked else ():
                remaining[number] += 1
        except (Unreadable, sqlite3.Error):
            for number in asked:
                dark[number] = True
    return [Seen(remaining=n, inconclusive=unseen and not n) for n, unseen in zip(remaining, dark, strict=True)]


def _holding(
    folder: Folder, name: str, orders: Sequence[EraseOrder], asked: Sequence[int], cut_offs: Mapping[UUID, int]
) -> set[int]:
    path = folder.path_of(name)
    given = json.dumps([_row(n, orders[n], cut_offs) for n in asked], ensure_ascii=False)
    rows = [row for n in asked for row in _known(n, orders[n])]
    facts, memories = (json.dumps([r for r in rows if r[4] == kind], ensure_ascii=False) for kind in ("fact", "memory"))
    quiet = "" if any(file.stat().st_size for file in disk.sidecars(path)) else "&immutable=1"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro{quiet}", uri=True, isolation_level=None)) as copy:
        copy.execute("BEGIN")
        queries = [(_FACTS, given), (_FACTS_KNOWN, facts)]
        tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "memories" in tables:
            queries += [(_MEMORIES, given), (_MEMORIES_KNOWN, memories)]
        every = json.dumps(rows, ensure_ascii=False)
        if "preference_events" in tables:
            queries += [(_EVENTS, given), (_EVENTS_KNOWN, every), (_CANDIDATES, given), (_CANDIDATES_KNOWN, every)]
        if "drafts" in tables:
            queries += [(_DRAFTS, given), (_DRAFTS_KNOWN, every)]
        return {number for query, asking in queries for (number,) in copy.execute(query, (asking,))}


def _row(number: int, order: EraseOrder, cut_offs: Mapping[UUID, int]) -> tuple[object, ...]:
    scope, selector = order.scope, order.selector
    asked = (scope.tenant, scope.user, scope.project, selector.kind.value, selector.value)
    return number, str(order.job), *asked, cut_offs.get(order.job)


def _known(number: int, order: EraseOrder) -> Iterator[tuple[object, ...]]:
    """Give what the sources have revoked, and the records by which find has named the copies."""
    witnesses = (_record(target.derived_of) for target in order.targets if target.derived_of)
    for target in (*order.known, *(target for target in witnesses if target is not None)):
        yield number, order.scope.tenant, target.id, target.version, target.kind


def _record(told: str) -> Target | None:
    kind, _, rest = told.partition(":")
    item, _, version = rest.rpartition("@")
    return Target(kind=kind, id=item, version=int(version)) if version.isdecimal() else None
