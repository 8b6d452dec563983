"""Which tombstones a job sets for chains, made from texts that are hidden by then and not yet erased.

A memory is told and forgotten without a key, in the scope of its level: the project is its
task, and none where it is seen from all tasks of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory import marking
from adapters.memory.batch import PART, Found
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.due import Due
from adapters.memory.facts import place_of, scope_of
from adapters.memory.tables import USER_WIDE, facts, preference_events
from orchestrator import Gate, Scope, SelectorKind, Tombstone, candidate_tokens, distinctive_tokens

Versions: TypeAlias = Callable[[], Iterator[Sequence[Found]]]
"""Reads the versions that a job has taken, some at a time, as often as it is called."""


def marks_of(connection: sa.Connection, gate: Gate, due: Due, versions: Versions) -> Iterator[Iterator[Tombstone]]:
    """Give the tombstones of the versions that a job has taken, some at a time."""
    if due.order.selector.kind is SelectorKind.SOURCE:
        for part in versions():
            yield (
                gate.for_text(scope_of(row.tenant, row.user_id, row.task_id), None, row.text, due.cut_off)
                for row in part
            )
        return
    staying = _staying(connection, versions)
    for part in versions():
        sources = {(row.tenant, row.source) for row in part}
        behind = marking.ancestors(connection, sources)
        # What has expired may be told again by a new message: its cut-off is its own source's.
        own = {} if due.raises else marking.positions(connection, sources)
        yield (
            mark
            for row in part
            for mark in _of_version(
                gate,
                row,
                (row.source, *behind[row.tenant, row.source]),
                staying,
                due.cut_off if due.raises else own.get((row.tenant, row.source), 0),
                text=due.raises,
            )
        )


def _of_version(
    gate: Gate, row: Found, told_by: Sequence[str], staying: frozenset[str], cut_off: int, *, text: bool
) -> Iterator[Tombstone]:
    scope = scope_of(row.tenant, row.user_id, row.task_id)
    if text:
        yield gate.for_text(scope, None, row.text, cut_off)
    tokens = distinctive_tokens(row.text, staying.intersection)
    # The sources behind this one have told the same.
    for source in told_by:
        yield from gate.for_tokens(scope, source, tokens, cut_off)


def _staying(connection: sa.Connection, versions: Versions) -> frozenset[str]:
    """Give the tokens of one chain that stand in facts, preferences and memories of its scope that stay, too."""
    tokens, scopes = set[str](), set[Scope]()
    for part in versions():
        for row in part:
            tokens |= candidate_tokens(row.text)
            scopes.add(scope_of(row.tenant, row.user_id, row.task_id))
    staying = set[str]()
    for scope in scopes:
        for query in (_FACTS, _EVENTS, _MEMORIES):
            for part in _read(connection, query, scope):
                staying.update(*(tokens.intersection(candidate_tokens(text)) for (text,) in part))
    return frozenset(staying)


def _read(connection: sa.Connection, query: sa.Select[Any], scope: Scope) -> Iterator[Sequence[Found]]:
    statement = query.execution_options(stream_results=True)
    named = {f"of_{name}": value for name, value in place_of(scope).items()}
    with connection.execute(statement, named) as found:
        yield from found.partitions(PART)


_f, _e, _m, _t = facts.c, preference_events.c, memories.c, memory_tenants.c
_HERE: Final = [sa.bindparam(f"of_{name}", type_=sa.Text()) for name in ("tenant", "user_id", "project")]
_FACTS: Final = sa.select(_f.value).where(
    sa.tuple_(_f.tenant, _f.user_id, _f.project) == sa.tuple_(*_HERE), _f.active == 1
)
_EVENTS: Final = sa.select(_e.value).where(
    sa.tuple_(_e.tenant, _e.user_id, _e.project) == sa.tuple_(*_HERE), _e.state == "live", _e.value.is_not(None)
)
_MEMORIES: Final = (
    sa.select(_m.text)
    .join(memory_tenants, _t.memory_id == _m.id)
    .where(_t.tenant == _HERE[0], _m.user_id == _HERE[1], sa.func.coalesce(_m.task_id, USER_WIDE) == _HERE[2])
    .where(_t.revoked == 0)
)
