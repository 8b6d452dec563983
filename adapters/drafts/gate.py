"""The gate before a draft: what a writer has made is a new source, derived from the sources of all that it was given.

A fact, key and value, passed the gate when it was put, perhaps by a fresh confirmation, and it
holds in this very transaction. So the gate is asked about the rest: what the writer has added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.sources import ancestors_of, position_of
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, GateRefused, Origin, Scope, Write


def pass_gate(
    connection: sa.Connection, gate: Gate, scope: Scope, handle: str, text: str, facts: Sequence[Found]
) -> None:
    """Let a text through that was made from these facts, or raise `GateRefused`."""
    sources = {fact.source for fact in facts}
    behind = (ancestors_of(connection, scope.tenant, source) for source in sources)
    accepted_now = position_of(connection, scope.tenant) + 1
    origin = Origin(id=handle, position=accepted_now, ancestors=frozenset(sources).union(*behind))
    write = Write(scope=scope, key=None, text=_rest(text, facts), origin=origin)
    refusal = gate.decide(write, LocalTombstones(connection))
    if refusal is not None:
        raise GateRefused(refusal)


def _rest(text: str, facts: Sequence[Found]) -> str:
    """Take whole keys and values out of a text, the longest first; one within a word stays a part of that word."""
    for told in sorted({part for fact in facts for part in (fact.key, fact.value)}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(told)}(?!\w)", " ", text)
    return text
