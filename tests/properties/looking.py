"""Looking at five stores from outside: what lies in each, whoever may see it, and what each gives to a reader."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import redis

from orchestrator import Scope, Target
from tests.integration.five_stores import Five

if TYPE_CHECKING:
    from tests.properties.told import Telling

Piece: TypeAlias = tuple[str, str, str]
"""Where a token lies: the store, or the copy by its handle; the handle there; the token."""
SOURCE: Final = ("memory", "drafts")  # one file: what is put back brings both back
_TEXTS = ("SELECT fact_id || '@' || version, value FROM facts", "SELECT handle, text FROM drafts")
_TOKEN = re.compile(r"P\d{6}")


class Look:
    """What lies in the stores now, by tokens. It calls nothing of what finds, erases or looks again."""

    def __init__(self, five: Five, server: redis.Redis, vectors: dict[bytes, str]) -> None:
        self._five, self._server, self._vectors = five, server, vectors
        self._folder = five.control.settings.state_dir

    def pieces(self) -> set[Piece]:
        """Give where which tokens lie, in all stores and copies."""
        source = zip(SOURCE, rows(self._folder / "memory.db", *_TEXTS), strict=True)
        found = {(store, *piece) for store, texts in source for piece in _tokens(texts)}
        found |= {("vector", id_, self._vectors[vector]) for id_, vector in self._points()}
        found |= {("cache", *piece) for piece in _tokens(self._answers())}
        for file in self.copies():
            found |= {(file.stem, *piece) for texts in rows(file, *_TEXTS) for piece in _tokens(texts)}
        return found

    def copies(self) -> list[Path]:
        return [file for file in sorted((self._folder / "backups").glob("*.db")) if not file.name.startswith(".")]

    def revoked(self) -> set[str]:
        """Name the jobs for which the source says that it has revoked."""
        (revoked,) = rows(self._folder / "memory.db", "SELECT job FROM source_revocations")
        return {job for (job,) in revoked}

    def left(self) -> set[tuple[str, str]]:
        """Give job and fact of what the source says that it has left because of a hold."""
        (left,) = rows(self._folder / "memory.db", "SELECT job, fact_id FROM revocation_left")
        return set(left)

    def records(self) -> set[Target]:
        """Name the facts that lie in the source, whether anybody may read them or not."""
        (facts,) = rows(self._folder / "memory.db", "SELECT fact_id, version FROM facts")
        return {Target(kind="fact", id=fact, version=version) for fact, version in facts}

    def served(self, scope: Scope, tellings: list[Telling]) -> dict[str, set[str]]:
        """Give for each store the tokens that a reader of a scope gets from it."""
        five, mine = self._five, [t for t in tellings if t.scope == scope]
        points = dict(self._points())
        hits = five.index.search(scope, [1.0, 1.0, 1.0, 1.0], limit=1000)
        assert not hits.failed
        answers = [five.cache.answers.get(scope, t.question) for t in mine if t.cached]
        reports = [five.drafts.runtime.inspect(scope, t.reported).report for t in mine if t.reported is not None]
        return {
            "memory": {fact.value for fact in five.memory.store.current(scope)},
            "vector": {self._vectors[points[hit.id]] for hit in hits.hits},
            "cache": {token for answer in answers for token in _TOKEN.findall(answer or "")},
            "drafts": {token for report in reports if report for token in _TOKEN.findall(report.text)},
        }

    def _points(self) -> list[tuple[str, bytes]]:
        (points,) = rows(self._folder / "vectors.db", "SELECT id, vector FROM vector_points")
        return points

    def _answers(self) -> Iterator[tuple[str, str]]:
        keys = [key for key in self._server.scan_iter(count=1000) if b":a:" in key]
        with self._server.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hget(key, "answer")
            answers = zip(keys, pipeline.execute(), strict=True)
        yield from ((key.decode(), answer.decode()) for key, answer in answers if answer is not None)


def packed(vector: list[float]) -> bytes:
    return struct.pack("<4f", *vector)


def rows(file: Path, *queries: str) -> list[list[Any]]:
    """Read a database as anybody would; of what nobody has written yet there is nothing."""
    if not file.exists():
        return [[] for _ in queries]
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        return [_rows(database, query) for query in queries]


def _rows(database: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return database.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error)  # noqa: PT017 - any other error is one
        return []


def _tokens(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield from ((handle, token) for handle, text in texts for token in _TOKEN.findall(text))
