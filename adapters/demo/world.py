"""The demo's people: two tenants, five users, 300 facts with versions and sources, and cached answers."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from orchestrator import Scope, Target

READER: Final = Scope(tenant="tenant-a", user="reader-a", project="trip-planning")
SCOPES: Final = (
    READER,
    Scope(tenant="tenant-a", user="reader-b", project="trip-planning"),
    Scope(tenant="tenant-a", user="reader-c", project="research"),
    Scope(tenant="tenant-b", user="reader-a", project="trip-planning"),
    Scope(tenant="tenant-b", user="reader-d", project="research"),
)
KEYS: Final = 20
VERSIONS: Final = 3
ANSWERS: Final = 10
SOURCE: Final = "trip-planning/turn-6"
SECRET_KEY: Final = "passport"
SECRET: Final = "The passport number is P1234567."
OTHER_KEY: Final = "allergy"
OTHER_SECRET: Final = "Allergic to walnuts, see letter Q7654321."
QUESTIONS: Final = {SECRET_KEY: "Which passport do I travel with?", OTHER_KEY: "What may I not eat?"}
SECRETS: Final = ("P1234567", "Q7654321")
TRANSCRIPT: Final = f"turn-6, reader-a: {SECRET} Please book the train.\n"
_COUNT: Final = """\
import pathlib, sys
texts = [path.read_bytes() for path in pathlib.Path(sys.argv[1]).glob("memory.db*")]
print(sum(text.count(secret.encode()) for text in texts for secret in sys.argv[2:]))
"""


@dataclass(frozen=True, kw_only=True)
class World:
    """The two stores, open as an application has them."""

    memory: MemoryAdapter
    cache: CacheAdapter
    folder: Path

    def populate(self) -> int:
        """Store everything; give the number of fact versions."""
        total = 0
        for scope in SCOPES:
            for n in range(KEYS):
                for version in range(1, VERSIONS + 1):
                    secret = scope == READER and version == VERSIONS
                    key, text = f"key-{n:02}", f"fact {n} in version {version}"
                    source = f"{scope.user}/turn-{n}-{version}"
                    if secret and n == 0:
                        key, text, source = SECRET_KEY, SECRET, SOURCE
                    elif secret and n == 1:
                        key, text, source = OTHER_KEY, OTHER_SECRET, "trip-planning/turn-7"
                    self.memory.store.register_source(scope, source)
                    self.memory.store.put(scope, key, text, source, user_statement=True)
                    total += 1
            self._fill_cache(scope)
        (self.folder / "transcript.txt").write_text(TRANSCRIPT)
        return total

    def _fill_cache(self, scope: Scope) -> None:
        revision = self.memory.store.revision(scope)
        facts = {fact.key: fact for fact in self.memory.store.current(scope)}
        chosen = [key for key in facts if key in QUESTIONS] + [key for key in facts if key not in QUESTIONS][:ANSWERS]
        for key in chosen:
            fact = facts[key]
            origin = [Target(kind="fact", id=fact.id, version=fact.version)]
            for question in (QUESTIONS.get(key, f"What about {key}?"), f"Tell me again about {key}."):
                self.cache.answers.put(scope, question, f"You said: {fact.value}", origin, revision=revision)

    def current(self) -> dict[str, str]:
        """Read the reader's facts as an application does."""
        return {fact.key: fact.value for fact in self.memory.store.current(READER)}

    def answers(self) -> list[str]:
        """Ask the cache everything that was cached about the two secrets."""
        asked = [q for key, first in QUESTIONS.items() for q in (first, f"Tell me again about {key}.")]
        return [answer for q in asked if (answer := self.cache.answers.get(READER, q)) is not None]

    def facts(self) -> dict[tuple[str, ...], tuple[Any, ...]]:
        """Read every fact row raw, not through the library."""
        with self.database() as connection:
            rows = connection.execute("SELECT * FROM facts ORDER BY tenant, user_id, project, key, version").fetchall()
        return {tuple(str(part) for part in row[:5]): tuple(row) for row in rows}

    def entries(self) -> dict[bytes, Mapping[bytes, bytes]]:
        """Read every cached answer raw, not through the library."""
        client: Any = self.cache.client()
        return {key: client.hgetall(key) for key in client.scan_iter() if client.type(key) == b"hash"}

    def database(self) -> sqlite3.Connection:
        """Open the source database's file."""
        return sqlite3.connect(self.folder / "state" / "memory.db")

    def raw_hits(self) -> int:
        """Count how often a secret stands in the source database's files, whatever the database says."""
        # In a process of its own: closing a file gives up the locks that SQLite holds on it in the same process, and
        # the next command would take the log of the database from under our open connections.
        command = [sys.executable, "-c", _COUNT, str(self.folder / "state"), *SECRETS]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603 - our own command
