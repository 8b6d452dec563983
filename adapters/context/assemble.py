"""Assembling an input: what may go in, then its order, then the budget, then all of it looked at once more.

Principles: what is handed out was valid in the transaction that kept it. A change of the memory
meanwhile begins the selection anew, some times and not for ever. Nothing is handed out that
deletion jobs could not find.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import sqlalchemy as sa

from adapters.context import keep
from adapters.context.admit import is_admitted, position
from adapters.context.assembled import Assembled, Item
from adapters.context.budget import fill
from adapters.context.eligible import Eligible, eligible
from adapters.context.errors import InputTaken, MemoryUnsettled
from adapters.context.rank import Ranked, Ranking, chosen
from adapters.context.record import Record, Scoped
from adapters.drafts import DraftsAdapter
from adapters.drafts.inputs import MAX_NAME
from adapters.drafts.schema import open_in
from adapters.memory.engine import reading, writing
from adapters.memory.facts import check_text, check_value
from adapters.memory.keyed.named import EVENT
from adapters.memory.preferences.marks import key_mac
from adapters.memory.sources import position_of
from orchestrator import InvalidRequest, Scope, Selector, SelectorKind

TRIES: Final = 3
"""Selections that are begun before a memory that keeps changing is left alone."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class _Selected:
    revisions: tuple[int, int]
    records: Sequence[Record]
    outranked: Sequence[Record]
    dropped: int
    failed: bool


class Assembler:
    """Makes inputs for one person, in the projects of which they are a member when it is called.

    It works on the database of the drafts adapter: where that is not enabled no deletion job would
    reach an input, and none is made.
    """

    def __init__(self, drafts: DraftsAdapter, session: Scoped) -> None:
        """Bind it to that database and to who asks; its tables are made where there are none."""
        self._engine, self._context = drafts._engine, drafts._context  # noqa: SLF001 - the same database, one transaction
        self._session = session
        open_in(self._engine)

    def assemble(
        self,
        name: str,
        ranking: Ranking,
        *,
        project: str | None = None,
        preferences: Collection[str] = (),
        constraints: Mapping[str, str] = _NONE,
    ) -> Assembled:
        """Give the input of that name, made now, or as it was made before: a repeat of a call is the same input.

        Preferences are asked for by key and go in first, the ranked records after them. `constraints`
        (value by key) are what the current task asks for: memory of the same key stays out, and stays
        as it is. Raises `InputTaken` where the memory has changed since that name was used or other
        things are asked for, `MemoryUnsettled`, `InvalidRequest`, and what the session refuses.
        """
        _check(name, preferences, constraints)
        for _ in range(TRIES):
            scope = self._session.scope(project)
            selected = self._select(scope, ranking, preferences, constraints)
            scope = self._session.scope(project)  # whoever is no member any more gets nothing of it
            with writing(self._engine, [scope.tenant]) as connection:
                made = self._revalidated(connection, scope, name, selected, preferences, constraints)
            if made is not None:
                facts = {"items": len(made.items), "omitted": len(made.omitted), "dropped": made.dropped}
                self._context.log.info("input.assembled", **facts, withheld=made.withheld, failed=made.failed)
                return made
        raise MemoryUnsettled

    def _select(
        self, scope: Scope, ranking: Ranking, preferences: Collection[str], constraints: Mapping[str, str]
    ) -> _Selected:
        with reading(self._engine, [scope.tenant]) as connection:
            found = self._eligible(connection, scope, preferences)
        free = [record for record in found.records if record.key not in constraints]
        ranked: Ranked = ranking(free)
        best, dropped = chosen(free, ranked)
        return _Selected(
            revisions=found.revisions,
            records=[*(record for record in found.preferences if record.key not in constraints), *best],
            outranked=[record for record in (*found.preferences, *found.records) if record.key in constraints],
            dropped=dropped,
            failed=ranked.failed,
        )

    def _revalidated(
        self,
        connection: sa.Connection,
        scope: Scope,
        name: str,
        selected: _Selected,
        preferences: Collection[str],
        constraints: Mapping[str, str],
    ) -> Assembled | None:
        """Keep the input and give it; None where the memory has changed since it was selected."""
        gate, now = self._context.gate, self._eligible(connection, scope, preferences)
        asked = self._asked(scope, preferences, constraints)
        kept = keep.read(connection, gate, scope, name, constraints)
        if kept is not None:
            return self._as_before(connection, kept, asked, now)
        if now.revisions != selected.revisions:
            return None
        # Under the same revision a record can only have expired.
        valid = [record for record in selected.records if record.target in now.targets]
        within, omitted, withheld = self._filled(connection, valid)
        made = Assembled(
            scope=scope,
            name=name,
            items=tuple(_item(connection, record) for record in within),
            constraints=dict(constraints),
            revision=now.revisions[0],
            general_revision=now.revisions[1],
            as_of=position_of(connection, scope.tenant),
            omitted=tuple(record.target for record in omitted),
            outranked=tuple(record.target for record in selected.outranked),
            dropped=selected.dropped,
            withheld=withheld,
            failed=selected.failed,
            consulted={key_mac(gate, scope, key): told.sequence for key, told in now.preferred.items()},
        )
        keep.write(connection, gate, made, asked)
        return made

    def _filled(self, connection: sa.Connection, records: Sequence[Record]) -> tuple[list[Record], list[Record], int]:
        """Fill the budget with what the gate lets through; give what is omitted, and how much was withheld."""
        left, refused = list(records), set[Record]()
        while True:
            within, omitted = fill(left)
            new = {record for record in within if not is_admitted(connection, self._context.gate, record)}
            if not new:
                return within, omitted, len(refused)
            refused |= new
            left = [record for record in left if record not in new]

    def _as_before(
        self, connection: sa.Connection, kept: tuple[Assembled, str], asked: str, now: Eligible
    ) -> Assembled:
        """Give what was kept while all of it may still be handed out, and raise `InputTaken` where it may not."""
        made, asked_then = kept
        used = {item.target for item in made.items}
        still = [record for record in (*now.preferences, *now.records) if record.target in used]
        same = asked_then == asked and (made.revision, made.general_revision) == now.revisions
        if not same or self._filled(connection, still)[2] or len(still) != len(used):
            raise InputTaken
        return made

    def _eligible(self, connection: sa.Connection, scope: Scope, preferences: Collection[str]) -> Eligible:
        return eligible(connection, self._context.gate, scope, self._context.clock.now(), preferences)

    def _asked(self, scope: Scope, preferences: Collection[str], constraints: Mapping[str, str]) -> str:
        told = json.dumps([sorted(set(preferences)), sorted(constraints.items())])
        return self._context.gate.handle(scope.tenant, "input-asked", scope.canonical(), told)


def _item(connection: sa.Connection, record: Record) -> Item:
    at = record.target.version if record.target.kind == EVENT else position(connection, record)
    return Item(target=record.target, key=record.key, text=record.text, position=at)


def _check(name: str, preferences: Collection[str], constraints: Mapping[str, str]) -> None:
    check_text("name", name, MAX_NAME)
    # A text is a collection, too: of the letters of a key.
    if isinstance(preferences, str) or not isinstance(preferences, Collection):
        message = "preferences must be a list of keys"
        raise InvalidRequest(message, field="preferences")
    for key in (*preferences, *constraints):
        Selector(kind=SelectorKind.KEY, value=key)
    for value in constraints.values():
        check_value(value)
