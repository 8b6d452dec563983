"""The memory store with events and candidates under the contract: each record of a suite is one of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from adapters.memory.candidates import Candidates
from adapters.memory.engine import writing
from adapters.memory.preferences import PreferenceLog
from adapters.memory.tables import fact_candidates, preference_events, preferences, tenant_positions
from orchestrator import Gate
from orchestrator.testing import Record
from tests.contract.stores import BULK, KEYRING, MemoryUnderTest, RealClock

_PROGRAM: Final = "summariser"
_SEQUENCES: Final = ("preference_events", "erased_events")


class EventsUnderTest(MemoryUnderTest):
    """Every record is an event that holds: what holds of its key stands under the same handle."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__(folder, url)
        self.preferences = PreferenceLog(self.adapter._engine, Gate(KEYRING), RealClock())
        self._accepted: set[tuple[str, int]] = set()

    def plant(self, record: Record) -> None:
        store = self.adapter.store
        if not store.knows_source(record.scope, record.source):
            store.register_source(record.scope, record.source)
        event = self.preferences.prefer(record.scope, record.key, record.text, record.source, user_statement=True)
        self._accepted.add((record.scope.tenant, event.sequence))

    def plant_all(self, records: Sequence[Record]) -> None:
        """Plant the first by the library, and a bulk of others as the rows that it writes."""
        single = records if len(records) < BULK else records[:1]
        for record in single:
            self.plant(record)
        if single is records:
            return
        with writing(self.adapter._engine, [records[0].scope.tenant]) as connection:
            start = max(row.position for row in connection.execute(tenant_positions.select()))
            events, held = [], []
            for n, r in enumerate(records[1:], start + 1):
                place = {"tenant": r.scope.tenant, "user_id": r.scope.user, "project": r.scope.project, "key": r.key}
                event = {**place, "handle": str(uuid4()), "sequence": n, "operation": "set", "value": r.text}
                held.append(event)
                events.append({**event, "source": r.source, "accepted_at_us": 0, "state": "live"})
            self._accepted |= {(r.scope.tenant, n) for n, r in enumerate(records[1:], start + 1)}
            connection.execute(preference_events.insert(), events)
            connection.execute(preferences.insert(), held)
            connection.execute(tenant_positions.update().values(position=start + len(records)))

    def raw(self) -> Mapping[str, bytes]:
        """Read each event with what holds by it, under its handle: either of them is a record.

        One that has gone and has left no mark is a record of its own: an older answer would take its place.
        """
        found: dict[str, list[list[str]]] = {}
        for table in sorted(self.tables() & {"preference_events", "preferences"}):
            for row in self.run(f"SELECT tenant, handle, t.* FROM {table} AS t"):  # noqa: S608 - names of ours
                found.setdefault(f"event:{row[0]}:{row[1]}", []).append([table, *map(str, row)])
        kept = [f"SELECT tenant, sequence FROM {table}" for table in _SEQUENCES if table in self.tables()]  # noqa: S608 - ours
        unmarked = self._accepted.difference(*map(self.run, kept))
        return {
            **super().raw(),
            **{handle: json.dumps(rows).encode() for handle, rows in found.items()},
            **{f"unmarked:{tenant}:{sequence}": b"" for tenant, sequence in unmarked},
        }

    def readable(self, record: Record) -> bool:
        read = (self.preferences.resolve(record.scope, record.key), self.preferences.state(record.scope, record.key))
        return any(held.value == record.text for held in read)

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take the events away, and let a late worker apply them again: nothing of them is left but what holds."""
        with super().lie():
            self.run("UPDATE preferences SET operation = 'set', value = 'late'")
            self.run("DELETE FROM preference_events")
            yield


class CandidatesUnderTest(MemoryUnderTest):
    """Every record is a candidate that waits for a decision."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__(folder, url)
        self.candidates = Candidates(self.adapter._engine, Gate(KEYRING), RealClock())

    def plant(self, record: Record) -> None:
        store = self.adapter.store
        if not store.knows_source(record.scope, record.source):
            store.register_source(record.scope, record.source)
        self.candidates.propose(record.scope, record.key, record.text, record.source, proposed_by=_PROGRAM)

    def plant_all(self, records: Sequence[Record]) -> None:
        """Plant the first by the library, and a bulk of others as the rows that it writes."""
        single = records if len(records) < BULK else records[:1]
        for record in single:
            self.plant(record)
        if single is records:
            return
        rows = [
            {
                "tenant": r.scope.tenant,
                "user_id": r.scope.user,
                "project": r.scope.project,
                "key": r.key,
                "handle": f"{n:032x}",
                "value": r.text,
                "source": r.source,
                "expires": math.inf,
                "proposed_by": _PROGRAM,
                "state": "pending",
                "proposed_at_us": 0,
            }
            for n, r in enumerate(records[1:])
        ]
        with writing(self.adapter._engine, [records[0].scope.tenant]) as connection:
            connection.execute(fact_candidates.insert(), rows)

    def raw(self) -> Mapping[str, bytes]:
        here = "fact_candidates" in self.tables()
        rows = self.run("SELECT tenant, handle, t.* FROM fact_candidates AS t") if here else ()
        candidates = {f"candidate:{row[0]}:{row[1]}": json.dumps([*map(str, row)]).encode() for row in rows}
        return {**super().raw(), **candidates}

    def readable(self, record: Record) -> bool:
        return any((c.key, c.value) == (record.key, record.text) for c in self.candidates.pending(record.scope))

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take candidates from their owners as well, and erase none."""
        with super().lie():
            self.run("UPDATE fact_candidates SET user_id = 'nobody:' || user_id")
            yield


@contextmanager
def events_in(folder: Path) -> Iterator[EventsUnderTest]:
    store = EventsUnderTest(folder)
    with closing(store.adapter):
        yield store


@contextmanager
def candidates_in(folder: Path) -> Iterator[CandidatesUnderTest]:
    store = CandidatesUnderTest(folder)
    with closing(store.adapter):
        yield store
