"""Looking for events and candidates again: hand-written SQL, with none of the code that finds or erases.

Principles: what is revoked is there as long as its row is, though its text is gone. What holds
now of a key is looked at for itself: it may outlive its event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adapters.memory.look import Look
from orchestrator import EraseOrder, SelectorKind

_EVENT: Final = """
    SELECT given.number, 'event', e.handle FROM {given} CROSS JOIN preference_events AS e
    WHERE e.tenant = given.tenant AND e.handle = given.handle AND e.sequence = given.version
"""
_IN_FORCE: Final = """
    SELECT given.number, 'preference', p.handle FROM {given} CROSS JOIN preferences AS p
    WHERE p.tenant = given.tenant AND p.handle = given.handle AND p.value IS NOT NULL
"""
_CANDIDATE: Final = """
    SELECT given.number, 'candidate', c.handle FROM {given} CROSS JOIN fact_candidates AS c
    WHERE c.tenant = given.tenant AND c.handle = given.handle
"""
# A statement that was accepted after the job's cut-off is no copy of what the job forgot.
_NOT_AFTER: Final = """
    LEFT JOIN accepted_sources AS s ON s.tenant = t.tenant AND s.source_id = t.source
    LEFT JOIN source_revocations AS r ON r.job = given.job
    WHERE t.tenant = given.tenant AND t.user_id = given.user_id
      AND (r.cut_off IS NULL OR s.position IS NULL OR s.position <= r.cut_off)
"""
_LISTS: Final = "SELECT given.number, '{0}', t.handle FROM {{given}} CROSS JOIN {1} AS t"
_EVENTS: Final = _LISTS.format("event", "preference_events") + _NOT_AFTER
_CANDIDATES: Final = _LISTS.format("candidate", "fact_candidates") + _NOT_AFTER
_IN_PROJECT: Final = " AND (given.project IS NULL OR t.project = given.project)"
_TOLD_IN: Final = """({0} = given.value OR EXISTS (SELECT 1 FROM source_ancestry AS a
    WHERE a.tenant = t.tenant AND a.source_id = {0} AND a.ancestor_id = given.value))"""
_OF_FACT: Final = """ AND (t.handle = given.value OR EXISTS (SELECT 1 FROM facts AS f WHERE f.tenant = t.tenant
    AND f.user_id = t.user_id AND f.project = t.project AND f.key = t.key AND f.fact_id = given.value))"""
# What has expired names neither.
_NAMED: Final = {
    SelectorKind.KEY: (_IN_PROJECT + " AND t.key = given.value",) * 2,
    SelectorKind.MEMORY: (_IN_PROJECT + _OF_FACT,) * 2,
    SelectorKind.SUBJECT: (_IN_PROJECT,) * 2,
    SelectorKind.SOURCE: (
        f" AND {_TOLD_IN.format('t.source')}",
        f" AND ({_TOLD_IN.format('t.source')} OR {_TOLD_IN.format('t.decided_in')})",
    ),
}


def seen(look: Look, orders: Sequence[EraseOrder]) -> Iterator[tuple[int, str, str]]:
    """Give what remains: the number of an order, and kind and handle of a record or of what holds by it."""
    given = {
        (number, order.scope.tenant, target.id, target.version, target.kind)
        for number, order in enumerate(orders)
        for target in (*order.targets, *order.known)
        if target.kind in {"event", "candidate"}
    }
    handles = ("number", "tenant", "handle", "version")
    events, candidates = ([row[:4] for row in given if row[4] == kind] for kind in ("event", "candidate"))
    for statement, rows in ((_EVENT, events), (_IN_FORCE, events), (_CANDIDATE, candidates)):
        yield from look(statement, handles, rows)
    for kind, conditions in _NAMED.items():
        asked = [
            (number, str(o.job), o.scope.tenant, o.scope.user, o.scope.project, o.selector.value)
            for number, o in enumerate(orders)
            if o.selector.kind is kind
        ]
        for statement, condition in zip((_EVENTS, _CANDIDATES), conditions, strict=True):
            yield from look(statement + condition, ("number", "job", "tenant", "user_id", "project", "value"), asked)
