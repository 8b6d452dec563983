"""The memory store with chains under the contract: every record that can be one is a memory, the others are facts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from adapters.memory.chains import MemoryInputError, MemoryNotFound, TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.tables import metadata as of_chains
from adapters.memory.engine import writing
from orchestrator import EraseOrder, Scope, Selector, SelectorKind
from orchestrator.testing import Record
from tests.contract.mutation import Orders, override
from tests.contract.stores import BULK, MemoryUnderTest

RECORD: Final = re.compile(r"\[[0-9, ]+\] expunge job [0-9a-f-]{36}")


class ChainsUnderTest(MemoryUnderTest):
    """Memories have no keys: a law that asks by key asks for the memory that was planted under it."""

    beside = MemoryUnderTest.beside | of_chains.tables.keys() | {"sqlite_sequence"}

    def __init__(self, folder: Path, url: str | None = None) -> None:
        super().__init__(folder, url)
        self._planted: dict[tuple[Scope, str], int] = {}
        self.chains = self.adapter.chains
        for verb in ("find", "revoke", "erase", "verify"):
            override(self.adapter, **{verb: self._by_memory(getattr(self.adapter, verb))})

    def plant(self, record: Record) -> None:
        scope = task_scope(record.scope)
        if scope is None:
            super().plant(record)
            return
        if not self.adapter.store.knows_source(record.scope, record.source):
            self.adapter.store.register_source(record.scope, record.source)
        memory = self.chains.remember(scope, "task", record.text, record.source, user_statement=True)
        self._planted[record.scope, record.key] = memory

    def plant_all(self, records: Sequence[Record]) -> None:
        """Plant the first by the library, and a bulk of others as later versions of its chain, as rows."""
        single = records if len(records) < BULK else records[:1]
        for record in single:
            self.plant(record)
        if single is records:
            return
        first = self._planted[records[0].scope, records[0].key]
        numbered = list(enumerate(records, first))[1:]
        rows = [
            {"id": n, "user_id": r.scope.user, "task_id": r.scope.project, "text": r.text, "source": r.source}
            | {"created_at": datetime.now(UTC), "expires_at": None, "supersedes": n - 1}
            for n, r in numbered
        ]
        tenants = [{"memory_id": n, "tenant": r.scope.tenant, "revoked": 0} for n, r in numbered]
        with writing(self.adapter._engine, [records[0].scope.tenant]) as connection:
            connection.execute(memories.insert(), rows)
            connection.execute(memory_tenants.insert(), tenants)
            if connection.dialect.name == "postgresql":
                last = sa.func.setval(sa.func.pg_get_serial_sequence("memories", "id"), rows[-1]["id"])
                connection.execute(sa.select(last))

    def raw(self) -> Mapping[str, bytes]:
        """Read records; what tells of a deletion is one as well, where it says more than ids and a job."""
        query = "SELECT m.*, t.tenant, t.revoked FROM memories AS m LEFT JOIN memory_tenants AS t ON t.memory_id = m.id"
        chains = {f"memories:{row[0]}": json.dumps([*map(str, row)]).encode() for row in self.run(query)}
        told = self.run("SELECT id, memory_ids || ' ' || reason FROM deletions")
        more = {f"deletions:{number}": text.encode() for number, text in told if not RECORD.fullmatch(text)}
        return {**super().raw(), **chains, **more}

    def readable(self, record: Record) -> bool:
        scope = task_scope(record.scope)
        if scope is None:
            return super().readable(record)
        try:
            versions = self.chains.history(scope, self._planted.get((record.scope, record.key), 0))
        except MemoryNotFound:
            return False
        return any(version.text == record.text for version in versions)

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take memories from their owner and their tenant as well, and erase none."""
        with super().lie():
            self.run("UPDATE memories SET user_id = 'nobody:' || user_id")
            self.run("DELETE FROM memory_tenants WHERE revoked = 1")
            yield

    def _by_memory(self, verb: Callable[[Orders], Sequence[object]]) -> Callable[[Orders], Sequence[object]]:
        return lambda orders: verb([self._asked(order) for order in orders])

    def _asked(self, order: EraseOrder) -> EraseOrder:
        memory = self._planted.get((order.scope, order.selector.value or ""))
        if order.selector.kind is not SelectorKind.KEY or memory is None:
            return order
        return replace(order, selector=Selector(kind=SelectorKind.MEMORY, value=str(memory)))


def task_scope(scope: Scope) -> TaskScope | None:
    """Give the scope of a memory; None where its names are none that a memory may have."""
    try:
        return None if scope.project is None else TaskScope(scope.user, scope.project, scope.tenant)
    except MemoryInputError:
        return None


@contextmanager
def chains_in(folder: Path) -> Iterator[ChainsUnderTest]:
    store = ChainsUnderTest(folder)
    with closing(store.adapter):
        yield store
