"""Which tombstones a job sets for events and candidates, made from texts that are hidden by then and not yet blank.

Principles: a text of a key that stands on, told by somebody else, is not marked, unless the key
itself is forgotten: the gate would keep it out of every write, and a restore would take it away.
What is forgotten by its own handle is marked by that as well: its key stays open, its text may
stand, or it has none, and a restore has to know it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import sqlalchemy as sa

from adapters.memory import marking
from adapters.memory.batch import Found
from adapters.memory.due import Due
from adapters.memory.facts import scope_of
from adapters.memory.tables import fact_candidates, facts
from adapters.memory.texts import STATED, read_of, staying, texts_of
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
    lasting = staying(connection, tokens) if kind in marking.TOLD else {}
    for part in records():
        behind = marking.ancestors(connection, {(row.tenant, row.source) for row in part})
        yield (
            mark
            for row in part
            for mark in _of_record(gate, row, behind.get((row.tenant, row.source), ()), standing, lasting, due)
        )


def _of_record(
    gate: Gate,
    row: Found,
    behind: Sequence[str],
    standing: frozenset[Text],
    lasting: Mapping[Scope, frozenset[str]],
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
    tokens = distinctive_tokens(row.value, lasting[scope].intersection)
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
        for part in read_of(connection, _OF_KEYS, scope):
            found.update(told.intersection((scope, row.key, fold(row.value)) for row in part))
    return frozenset(found)


def _scope(row: Found) -> Scope:
    return scope_of(row.tenant, row.user_id, row.project)


_PROPOSED: Final = texts_of(fact_candidates, fact_candidates.c.state == "pending")
# An older version of a fact may stand again: it is told by somebody, too.
_OF_KEYS: Final = sa.union_all(texts_of(facts, facts.c.state != "revoked"), STATED, _PROPOSED)
