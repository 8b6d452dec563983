"""Which tombstones a job sets for chains, made from texts that are hidden by then and not yet erased.

A memory is told and forgotten without a key, in the scope of its level: the project is its
task, and none where it is seen from all tasks of the user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import sqlalchemy as sa

from adapters.memory import marking
from adapters.memory.batch import Found
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.due import Due
from adapters.memory.facts import scope_of
from adapters.memory.tables import USER_WIDE
from adapters.memory.texts import HERE, staying
from orchestrator import Gate, Scope, SelectorKind, Tombstone, candidate_tokens, distinctive_tokens

Versions: TypeAlias = Callable[[], Iterator[Sequence[Found]]]
"""Reads the versions that a job has taken, some at a time, as often as it is called."""


def marks_of(connection: sa.Connection, gate: Gate, due: Due, versions: Versions) -> Iterator[Iterator[Tombstone]]:
    """Give the tombstones of the versions that a job has taken, some at a time."""
    if due.order.selector.kind is SelectorKind.SOURCE:
        for part in versions():
            yield (gate.for_text(_scope(row), None, row.text, due.cut_off) for row in part)
        return
    lasting = staying(connection, _tokens(versions), _MEMORIES)
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
                lasting,
                due.cut_off if due.raises else own.get((row.tenant, row.source), 0),
                text=due.raises,
            )
        )


def _of_version(
    gate: Gate, row: Found, told_by: Sequence[str], lasting: Mapping[Scope, frozenset[str]], cut_off: int, *, text: bool
) -> Iterator[Tombstone]:
    scope = _scope(row)
    if text:
        yield gate.for_text(scope, None, row.text, cut_off)
    tokens = distinctive_tokens(row.text, lasting[scope].intersection)
    # The sources behind this one have told the same.
    for source in told_by:
        yield from gate.for_tokens(scope, source, tokens, cut_off)


def _tokens(versions: Versions) -> dict[Scope, set[str]]:
    """Give the tokens of what is marked, by scope."""
    tokens = defaultdict[Scope, set[str]](set)
    for part in versions():
        for row in part:
            tokens[_scope(row)] |= candidate_tokens(row.text)
    return tokens


def _scope(row: Found) -> Scope:
    return scope_of(row.tenant, row.user_id, row.task_id)


_m, _t = memories.c, memory_tenants.c
_MEMORIES: Final = (
    sa.select(_m.text.label("value"))
    .join(memory_tenants, _t.memory_id == _m.id)
    .where(_t.tenant == HERE[0], _m.user_id == HERE[1], sa.func.coalesce(_m.task_id, USER_WIDE) == HERE[2])
    .where(_t.revoked == 0)
)
