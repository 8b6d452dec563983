"""What files still hold of deleted values: a scan in a process of its own, which has to see a live marker as well."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from orchestrator import Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.scan.report import Report

KEYS = Keys.derive(Keyring(current="tk-1", keys={"tk-1": bytes(range(32))}))
BY = Fingerprinter(KEYS)
SCANNER = ProcessScanner(KEYS, timedelta(seconds=30))
MARKER = b"9f2c77d1a40be5638c1d02e7b96af354"
SIDECARS = ("", "-wal", "-shm", "-journal")
COUNT = 200
GONE = [n for n in range(COUNT) if n % 4 == 0 or 100 <= n < 130]
KEPT = [n for n in range(COUNT) if n not in GONE]
# The sequence of facts, by hand: a test leaves one step out and sees what for it was there.
STEPS = {
    "optimize": "INSERT INTO words (words) VALUES ('optimize')",
    "analyze": "ANALYZE",
    "vacuum": "VACUUM",
    "checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
}


def value(number: int, length: int = 60) -> str:
    """Give a text that no other number has, with words of 64 letters: shorter ones cannot be seen in an index."""
    words = (sha256(f"{number} {word}".encode()).hexdigest() for word in range(1 + length // 65))
    return " ".join(words)[:length]


@dataclass
class Example:
    """A database of values, of which those in `GONE` are to go; every setting is the test's own."""

    file: Path
    journal: str = "DELETE"
    secure: str = "0"
    page: int = 4096
    length: int = 60
    encoding: str = "UTF-8"
    schema: Sequence[str] = ("CREATE TABLE facts (id INTEGER PRIMARY KEY, value TEXT)",)
    insert: str = "INSERT INTO facts (id, value) VALUES (?, ?)"
    delete: str = "DELETE FROM facts WHERE id = ?"
    count: int = COUNT
    application: list[sqlite3.Connection] = field(default_factory=list)

    @property
    def gone(self) -> list[int]:
        return [n for n in GONE if n < self.count]

    def connect(self, secure: str | None = None) -> sqlite3.Connection:
        made = sqlite3.connect(self.file, isolation_level=None, timeout=0)
        settings = {"page_size": self.page, "encoding": f"'{self.encoding}'", "secure_delete": secure or self.secure}
        for name, wanted in settings.items():
            made.execute(f"PRAGMA {name} = {wanted}")
        assert made.execute(f"PRAGMA journal_mode = {self.journal}").fetchone() == (self.journal.lower(),)
        assert made.execute("PRAGMA secure_delete").fetchone() == (SECURE[secure or self.secure],)
        return made

    def fill(self) -> None:
        """Fill it over a connection that stays open, as an application's does; the control is a live blob."""
        made = self.connect()
        self.application.append(made)
        for statement in (*self.schema, "CREATE TABLE control (marker BLOB)"):
            made.execute(statement)
        made.execute("BEGIN")
        made.executemany(self.insert, [(n, value(n, self.length)) for n in range(self.count)])
        made.execute("INSERT INTO control VALUES (?)", (MARKER,))
        made.execute("COMMIT")

    def churn(self) -> None:
        """Write every value that is to go once more and elsewhere, over the application's own connection."""
        (application,) = self.application
        application.execute("BEGIN")
        application.executemany(self.delete, [(n,) for n in self.gone])
        application.executemany(self.insert, [(n, value(n, self.length)) for n in reversed(self.gone)])
        application.execute("COMMIT")

    def erase(self, secure: str | None = None) -> None:
        with closing(self.connect(secure)) as eraser:
            eraser.execute("BEGIN")
            eraser.executemany(self.delete, [(n,) for n in self.gone])
            eraser.execute("COMMIT")

    def by_hand(self, *, without: str) -> None:
        """Take every step of the sequence but one."""
        with closing(self.connect(secure="1")) as database:
            for step, statement in STEPS.items():
                if step != without and (step != "optimize" or "words" in " ".join(self.schema)):
                    database.execute(statement).fetchall()

    def copy(self, name: str) -> Example:
        """Copy all files, without opening them here, and open the copy as an application does."""
        twin = replace(self, file=self.file.with_name(name), application=[])
        for path in self.files:
            subprocess.run(["cp", path, f"{twin.file}{path.name.removeprefix(self.file.name)}"], check=True)
        twin.application.append(twin.connect())
        twin.application[0].execute("SELECT count(*) FROM control").fetchone()
        self.application += twin.application
        return twin

    @property
    def files(self) -> list[Path]:
        """Give all that lies beside the database under its name."""
        return [path for path in (Path(f"{self.file}{suffix}") for suffix in SIDECARS) if path.exists()]

    def left(self, *parts: str) -> int:
        """Count the deleted values of which bytes are found, in all files or in those with these endings."""
        (found,) = left(self, parts=parts)
        return found


def left(*examples: Example, parts: Sequence[str] = ()) -> list[int]:
    """Count for each database the deleted values of which bytes are found, by one scan that sees what lives."""
    first, counts = examples[0], []
    live = [n for n in KEPT if n < first.count]
    files = {path: n for n, example in enumerate(examples) for path in example.files}
    report = scanned(list(files), {n: value(n, first.length) for n in (*first.gone, *live)})
    assert report.control_found
    assert not [file.doubt for file in report.files if file.doubt is not None]
    for number, example in enumerate(examples):
        looked = [file for file in report.files if files[file.path] == number]
        seen = {int(owner) for file in looked for owner in file.hits}
        assert seen.issuperset(live)
        if parts:
            seen = {int(o) for f in looked if f.path.name.removeprefix(example.file.name) in parts for o in f.hits}
        counts.append(len(seen.intersection(first.gone)))
    return counts


SECURE = {"0": 0, "1": 1, "FAST": 2}


@contextmanager
def filled(example: Example) -> Iterator[Example]:
    """Give a database that was filled, and close the application's connections afterwards."""
    try:
        example.fill()
        yield example
    finally:
        for connection in example.application:
            connection.close()


def scanned(files: Sequence[Path], values: Mapping[int, str]) -> Report:
    """Look for values in files, in another process."""
    wanted = {str(owner): BY.of_text(text, max(8, len(text) // 16)).rows for owner, text in values.items()}
    return SCANNER.files(files, wanted, MARKER)
