"""A source database in which people have told things, a folder of its copies, and the hands of a test on both."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from adapters.backup import BackupAdapter, Copy, Policy
from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Gate,
    Holding,
    Keyring,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    Target,
)
from tests.contract.stores import Lines
from tests.fakes import FakeClock

ANNA = Scope(tenant="acme", user="anna", project="trips")
AT_WORK = replace(ANNA, project="work")
EVERYWHERE = replace(ANNA, project=None)
BERTA = replace(ANNA, user="berta")
ELSEWHERE = replace(ANNA, tenant="other")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
PASSPORT, SEAT, RENEWED = "My passport number is P1234567.", "I sit at the aisle.", "My passport number is P7654321."
DAY = timedelta(days=1)


@dataclass
class Stage:
    """The deployment's two adapters on one state directory."""

    folder: Path
    memory: MemoryAdapter
    backup: BackupAdapter
    clock: FakeClock
    log: Lines

    @property
    def copies_folder(self) -> Path:
        return self.folder / "backups"

    @property
    def manifest(self) -> Path:
        return self.copies_folder / "manifest.json"

    def tell(self, scope: Scope, key: str, text: str, source: str, *behind: str) -> Target:
        """Let somebody tell a fact, and give it as the source names it."""
        store = self.memory.store
        if not store.knows_source(scope, source):
            store.register_source(scope, source, derived_from=behind)
        version = store.put(scope, key, text, source, user_statement=True)
        (fact,) = (fact for fact in store.current(scope) if fact.key == key)
        return Target(kind="fact", id=fact.id, version=version)

    def remember(self, scope: Scope, text: str, source: str) -> int:
        if not self.memory.store.knows_source(scope, source):
            self.memory.store.register_source(scope, source)
        return self.memory.chains.remember(task_of(scope), "task", text, source)

    def correct(self, scope: Scope, memory: int, text: str, source: str, *behind: str) -> int:
        self.memory.store.register_source(scope, source, derived_from=behind)
        return self.memory.chains.correct(task_of(scope), memory, text, source)

    def everybody(self) -> None:
        """Let three people tell the same: a fact and a memory each."""
        for scope in (ANNA, BERTA, ELSEWHERE):
            source = f"{scope.tenant}/{scope.user}/turn-6"
            self.tell(scope, "passport", PASSPORT, source)
            self.remember(scope, PASSPORT, source)

    def take(self, policy: Policy = Policy.REWRITE, *, days: int | None = None) -> Copy:
        self.clock.at += timedelta(seconds=1)
        return self.backup.take(policy, None if days is None else self.clock.now() + days * DAY)

    def path(self, copy: Copy) -> Path:
        return self.copies_folder / copy.file

    def order(self, selector: Selector = SUBJECT, scope: Scope = ANNA, **parts: Any) -> EraseOrder:  # noqa: ANN401
        deadline = self.clock.now() + timedelta(seconds=60)
        order = EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)
        return replace(order, **parts)

    def revoked(self, selector: Selector = SUBJECT, scope: Scope = ANNA, **parts: Any) -> EraseOrder:  # noqa: ANN401
        """Let the source revoke, and give the order to find what was made from it."""
        order = self.order(selector, scope, **parts)
        (answer,) = self.memory.revoke([order])
        return replace(order, known=answer.targets, held=frozenset())

    def found(self, order: EraseOrder) -> EraseOrder:
        """Find, and give the order to erase as the engine makes it: with targets, and without what is known."""
        holding: Holding
        (holding,) = self.backup.find([order])
        assert holding.cursor is None
        return replace(order, targets=holding.targets, known=())

    def erase(self, order: EraseOrder) -> Erased:
        (answer,) = self.backup.erase([order])
        return answer

    def look(self, order: EraseOrder) -> Seen:
        (answer,) = self.backup.verify([order])
        return answer

    def listed(self, copy: Copy) -> Copy:
        """Give what the manifest says of a copy by now."""
        return next(each for each, _ in self.backup.copies().copies if each.handle == copy.handle)

    def written(self) -> dict[str, Any]:
        written: dict[str, Any] = json.loads(self.manifest.read_text())
        return written

    def write(self, manifest: dict[str, Any]) -> None:
        self.manifest.write_text(json.dumps(manifest))

    def as_listed(self, copy: Copy) -> None:
        """Let the manifest name what the file of a copy holds by now: another tool has made it so."""
        content, written = self.path(copy).read_bytes(), self.written()
        (entry,) = (entry for entry in written["copies"] if entry["handle"] == copy.handle)
        entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        self.write(written)

    def rows(self, file: Path | Copy, query: str) -> list[tuple[Any, ...]]:
        with sql(self.path(file) if isinstance(file, Copy) else file) as database:
            return database.execute(query).fetchall()

    def told(self, copy: Copy) -> dict[str, list[tuple[Any, ...]]]:
        """Give all that a copy holds of each user, of each tenant."""
        facts = self.rows(copy, "SELECT tenant || '/' || user_id, * FROM facts ORDER BY fact_id, version")
        memories = self.rows(
            copy, "SELECT t.tenant || '/' || m.user_id, m.* FROM memories m JOIN memory_tenants t ON t.memory_id = m.id"
        )
        users: dict[str, list[tuple[Any, ...]]] = {}
        for row in (*facts, *memories):
            users.setdefault(str(row[0]), []).append(row)
        return users

    def is_as_listed(self, copy: Copy) -> bool:
        now, path = self.listed(copy), self.path(copy)
        holds = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
        return (now.sha256, now.bytes, now.pending) == (*holds, None)

    def debris(self) -> list[str]:
        """Name what lies in the folder and is neither a copy nor a book."""
        listed = {copy.file for copy, _ in self.backup.copies().copies} | {"manifest.json", ".windows.db"}
        return [path.name for path in self.copies_folder.rglob("*") if path.is_file() and path.name not in listed]


@contextmanager
def sql(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database as anybody would."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        yield database


def in_wal_mode(backups: Stage) -> Copy:
    """Give a copy as a tool makes it that copies a database with its log: part of it lies in the log alone."""
    live, copy = backups.folder / "memory.db", backups.take()
    with closing(sqlite3.connect(live, isolation_level=None)) as keeping:
        assert keeping.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        keeping.execute("BEGIN")
        keeping.execute("SELECT * FROM facts").fetchall()
        backups.tell(ANNA, "late", RENEWED, "turn-7")
        backups.tell(BERTA, "late", RENEWED, "turn-8")
        for end in ("", "-wal"):
            shutil.copy(f"{live}{end}", f"{backups.path(copy)}{end}")
    assert RENEWED.encode() not in backups.path(copy).read_bytes()
    backups.as_listed(copy)
    return copy


def task_of(scope: Scope) -> TaskScope:
    assert scope.project is not None
    return TaskScope(scope.user, scope.project, scope.tenant)


def adapters_in(folder: Path, **options: object) -> Stage:
    clock, log = FakeClock(), Lines()
    context = AdapterContext(clock=clock, gate=Gate(_KEYS), log=log, state_dir=folder)
    memory = MemoryAdapter(context, url=f"sqlite:///{folder / 'memory.db'}")
    return Stage(folder, memory, BackupAdapter(context, **options), clock, log)


_KEYS = Keyring(current="tk-1", keys={"tk-1": b"k" * 32})


@pytest.fixture
def backups(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Give a source in which three people have told the same; no copy was taken yet."""
    told = tmp_path_factory.getbasetemp() / "told-by-everybody.db"
    if not told.exists():  # told once, by the library, and the file is the start of every test
        first = adapters_in(tmp_path_factory.mktemp("everybody"))
        first.everybody()
        first.memory.close()
        (first.folder / "memory.db").rename(told)
    shutil.copy(told, tmp_path / "memory.db")
    made = adapters_in(tmp_path)
    yield made
    made.memory.close()
