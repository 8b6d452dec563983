"""A folder of copies under the contract: a record is a row in a copy of its own, beside rows that nobody may touch."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.backup import BackupAdapter
from adapters.backup.disk import SIDECARS
from adapters.backup.folder import BOOK, MARKER
from adapters.memory import MemoryAdapter
from orchestrator import Target
from orchestrator.testing import Record, StoreUnderTest
from tests.contract.mutation import Orders, override
from tests.contract.stores import PATIENCE, Lines, context_in

OTHER_TENANT = "decoy"
OTHER_USER = "-decoy"
_BESIDE: Final = (BOOK, MARKER, "manifest.json")
_SOURCE = "INSERT INTO accepted_sources VALUES (?, ?, ?, ?, 'user_message', ?, 0)"
_FACT = "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 9e999, 1, 'live')"
_REVOKED = """
    INSERT INTO revocation_targets SELECT ?, (SELECT count(*) FROM revocation_targets), ?, ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM revocation_targets WHERE job = ? AND kind = ? AND handle = ? AND version = ?)
"""


class BackupUnderTest(StoreUnderTest):
    """Each copy holds one record of the suite, and two of others: with its ids in another tenant, and in its own."""

    adapter: BackupAdapter
    is_built_upon = False

    def __init__(self, folder: Path) -> None:
        self._log = Lines()
        self._folder, self.disk, self.source = folder, folder / "disk", folder / "memory.db"
        self.file = self.disk / MARKER
        context = context_in(folder / "state", self._log)
        with closing(MemoryAdapter(context, url=f"sqlite:///{self.source}")) as memory:
            memory.chains.history  # noqa: B018 - opening it makes its tables
        self.disk.mkdir()
        self.adapter = BackupAdapter(context, manifest=self.disk / "manifest.json", source=self.source)
        self._decoys: dict[str, list[tuple[Any, ...]]] = {}
        self._taken = 0
        override(self.adapter, find=self._revoked_first(self.adapter.find))
        copy = self.adapter.take()  # the manifest is there, and one copy that holds nothing
        self._decoys[copy.file] = []
        self._tables = self._tables_of(self.disk / copy.file)

    def plant(self, record: Record) -> None:
        """Let the live source hold the record for as long as a copy is taken."""
        with closing(sqlite3.connect(self.source, isolation_level=None)) as live:
            live.execute("BEGIN")
            decoys = self._insert(live, record)
            live.execute("COMMIT")
        copy = self.adapter.take()
        self._decoys[copy.file] = decoys
        with closing(sqlite3.connect(self.source, isolation_level=None)) as live:
            live.execute("DELETE FROM facts")
            live.execute("DELETE FROM accepted_sources")

    def raw(self) -> Mapping[str, bytes]:
        """Read the records of all copies; another file, or a table that no source has, is a record too many."""
        found = {str(path.relative_to(self._folder)): path.read_bytes() for path in self._strays()}
        for path in self.copies():
            rows = self._rows(path)
            decoys = [row for row in rows if row[0] == OTHER_TENANT or row[1].endswith(OTHER_USER)]
            assert sorted(decoys) == sorted(self._decoys[path.name]), "another's record in the same copy has changed"
            for row in rows:
                if row not in decoys:
                    found[f"{path.name}:{row[0]}:{row[5]}@{row[4]}"] = json.dumps(row).encode()
            for table in self._tables_of(path) - self._tables:
                found[f"{path.name}:{table}"] = json.dumps(self._rows(path, table)).encode()
        return found

    def readable(self, record: Record) -> bool:
        """Tell whether whoever restores any of the copies would be given the record."""
        scope = record.scope
        wanted = (scope.tenant, scope.user, scope.project, record.key)
        return any(row[:4] == wanted and row[6] == record.text for path in self.copies() for row in self._rows(path))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Take the disk away, and put something in its place that is no folder."""
        away = self.disk.rename(self.disk.with_name("away"))
        self.disk.touch()
        try:
            yield
        finally:
            self.disk.unlink()
            away.rename(self.disk)

    def late_write(self, record: Record, revision: int) -> bool:
        """Take a copy that holds the record: nobody refuses a backup."""
        del revision
        self.plant(record)
        return True

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Let the manifest forget every copy, and leave the files."""
        manifest = self.disk / "manifest.json"
        with super().lie():
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "copies": []}))
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Look at the folder and go on with it; how long a scrub waits for that changes no law."""
        with pytest.MonkeyPatch.context() as patience, self.adapter._folder.shared(time.monotonic()):
            patience.setattr(self.adapter._files, "_patience", timedelta(seconds=PATIENCE))
            yield

    def log(self) -> list[str]:
        return self._log.lines

    def copies(self) -> list[Path]:
        """Give the copies that were taken, each of which holds what is others'."""
        paths = [self.disk / name for name in sorted(self._decoys)]
        assert all(path.exists() for path in paths), "a copy is gone, and another's records with it"
        return paths

    def copy_of(self, target: Target) -> Path:
        """Give the file of a target."""
        return self.disk / f"{target.id}.db"

    def _insert(self, live: sqlite3.Connection, record: Record) -> list[tuple[Any, ...]]:
        scope, fact = record.scope, record.fact
        self._taken += 1
        for n, tenant in enumerate((scope.tenant, OTHER_TENANT)):
            live.execute(_SOURCE, (tenant, record.source, scope.user, scope.project, 2 * self._taken + n))
        for tenant, user, item in (
            (scope.tenant, scope.user, fact.id),
            (OTHER_TENANT, scope.user, fact.id),
            (scope.tenant, scope.user + OTHER_USER, fact.id + OTHER_USER),
        ):
            place = (tenant, user, scope.project, record.key)
            text = record.text if (tenant, item) == (scope.tenant, fact.id) else f"What others said: {self._taken}."
            live.execute(_FACT, (*place, fact.version, item, text, record.source))
        rows: Sequence[tuple[Any, ...]] = live.execute("SELECT * FROM facts").fetchall()
        return [row for row in rows if row[5] != fact.id or row[0] == OTHER_TENANT]

    def _revoked_first(self, find: Callable[[Orders], Sequence[object]]) -> Callable[[Orders], Sequence[object]]:
        """Let the source have revoked what an order knows: it has written that down before anybody is told."""

        def revoke_and_find(orders: Orders) -> Sequence[object]:
            rows = [(str(o.job), t.kind, t.id, t.version) for o in orders for t in o.known if t.kind == "fact"]
            with closing(sqlite3.connect(self.source)) as live, live:
                for row in rows:
                    live.execute(_REVOKED, (*row, *row))
            return find(orders)

        return revoke_and_find

    def _strays(self) -> list[Path]:
        known = {self.source, *self.copies()} | {self.disk / name for name in _BESIDE}
        known |= {path.with_name(path.name + end) for path in known for end in SIDECARS}
        return [path for path in self._folder.rglob("*") if path.is_file() and path not in known]

    def _tables_of(self, path: Path) -> set[str]:
        return {row[1] for row in self._rows(path, "sqlite_master") if row[0] == "table"}

    @staticmethod
    def _rows(path: Path, table: str = "facts") -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as copy:
            return copy.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - our own tables


@contextmanager
def backups_in(folder: Path) -> Iterator[BackupUnderTest]:
    folder.mkdir(parents=True, exist_ok=True)
    store = BackupUnderTest(folder)
    with closing(store.adapter):
        yield store
