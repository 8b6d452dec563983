"""Which tombstones a job sets for events and candidates, made from texts that are hidden by then and not yet blank.

Principles: a text of a key that stands on, told by somebody else, is not marked, unless the key
itself is forgotten: the gate would keep it out of every write, and a restore would take it away.
What is forgotten by its own handle is marked by that as well: its key stays open, its text may
stand, or it has none, and a restore has to know it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory import marking
from adapters.memory.batch import PART, Found
from adapters.memory.due import Due
from adapters.memory.facts import place_of, scope_of
from adapters.memory.tables import fact_candidates, facts, preference_events
from orchestrator import Gate, Scope, SelectorKind, Tombstone, candidate_tokens, distinctive_tokens, fold

Records: TypeAlias = Callable[[], Iterator[Sequence[Found]]]
"""Reads the records that a job has taken, some at a time, as often as it is called."""
Text: TypeAlias = tuple[Scope, str, str]
"""Scope, key and folded text."""


def marks_of(connection: sa.Connection, gate: Gate, due: Due, records: Records) -> Iterator[Iterator[Tombstone]]:
    """Give the tombstones of the records that a job has taken, some at a time."""
    kind = due.order.selector.kind
    told, tokens = _told(records)
    standing = _standing(connection, told) if told and kind is not SelectorKind.KEY else frozenset[Text]()
    staying = _staying(connection, tokens) if kind in marking.TOLD else {}
    for part in records():
        behind = marking.ancestors(connection, {(row.tenant, row.source) for row in part})
        yield (
            mark
            for row in part
            for mark in _of_record(gate, row, behind.get((row.tenant, row.source), ()), standing, staying, due)
        )


def _of_record(
    gate: Gate,
    row: Found,
    behind: Sequence[str],
    standing: frozenset[Text],
    staying: dict[Scope, frozenset[str]],
    due: Due,
) -> Iterator[Tombstone]:
    scope = _scope(row)
    if due.order.selector.kind is SelectorKind.MEMORY:
        yield gate.for_text(scope, None, row.handle, due.cut_off)
    if row.value is None:
        return
    if (scope, row.key, fold(row.value)) not in standing:
        yield gate.for_text(scope, row.key, row.value, due.cut_off)
    if due.order.selector.kind not in marking.TOLD:
        return
    tokens = distinctive_tokens(row.value, staying[scope].intersection)
    # The sources behind this one have told the same.
    for source in (row.source, *behind):
        yield from gate.for_tokens(scope, source, tokens, due.cut_off)


def _told(records: Records) -> tuple[set[Text], dict[Scope, set[str]]]:
    """Give what is marked: the texts of each key, and the tokens of each scope."""
    told, tokens = set[Text](), dict[Scope, set[str]]()
    for part in records():
        for row in (row for row in part if row.value is not None):
            told.add((_scope(row), row.key, fold(row.value)))
            tokens.setdefault(_scope(row), set()).update(candidate_tokens(row.value))
    return told, tokens


def _standing(connection: sa.Connection, told: set[Text]) -> frozenset[Text]:
    """Give those of the texts that a record of the same key holds which stays."""
    found = set[Text]()
    for scope in {scope for scope, _, _ in told}:
        for part in _read(connection, _OF_KEYS, scope):
            found.update(told.intersection((scope, row.key, fold(row.value)) for row in part))
    return frozenset(found)


def _staying(connection: sa.Connection, tokens: dict[Scope, set[str]]) -> dict[Scope, frozenset[str]]:
    """Give those of the tokens that stand in facts and events of the same scope that stay."""
    staying = {scope: set[str]() for scope in tokens}
    for scope, wanted in tokens.items():
        for part in _read(connection, _LASTING, scope):
            staying[scope].update(*(wanted.intersection(candidate_tokens(row.value)) for row in part))
    return {scope: frozenset(some) for scope, some in staying.items()}


def _read(connection: sa.Connection, query: sa.CompoundSelect[Any], scope: Scope) -> Iterator[Sequence[Found]]:
    statement = query.execution_options(stream_results=True)
    named = {f"of_{name}": value for name, value in place_of(scope).items()}
    with connection.execute(statement, named) as found:
        yield from found.partitions(PART)


def _scope(row: Found) -> Scope:
    return scope_of(row.tenant, row.user_id, row.project)


_HERE: Final = [sa.bindparam(f"of_{name}", type_=sa.Text()) for name in ("tenant", "user_id", "project")]


def _texts_of(table: sa.Table, stays: sa.ColumnElement[bool]) -> sa.Select[Any]:
    c = table.c
    here = sa.tuple_(c.tenant, c.user_id, c.project) == sa.tuple_(*_HERE)
    return sa.select(c.key, c.value).where(here, stays, c.value.is_not(None))


_PROPOSED: Final = _texts_of(fact_candidates, fact_candidates.c.state == "pending")
_STATED: Final = _texts_of(preference_events, preference_events.c.state == "live")
# An older version of a fact may stand again: it is told by somebody, too.
_OF_KEYS: Final = sa.union_all(_texts_of(facts, facts.c.state != "revoked"), _STATED, _PROPOSED)
_LASTING: Final = sa.union_all(_texts_of(facts, facts.c.active == 1), _STATED)
