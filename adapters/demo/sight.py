"""The demo's own eyes: raw rows, raw entries and raw bytes, never read through the code that they are to judge."""

from __future__ import annotations

import json
import math
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from adapters.demo.people import DIMENSIONS, packed

Row: TypeAlias = tuple[Any, ...]
_FACTS: Final = """SELECT fact_id || '@' || version, tenant, user_id, project, key, version, value, source, confirmed,
    expires, active, state FROM facts ORDER BY 1"""
_DRAFTS: Final = "SELECT handle, tenant, user_id, project, job, step, text FROM drafts ORDER BY 1"
_POINTS: Final = """SELECT tenant || '/' || id, tenant, user_id, project, kind, origin, version, source, revision,
    vector FROM vector_points ORDER BY 1"""
_COUNT: Final = """\
import json, pathlib, sys
told = json.load(sys.stdin)
files = [path for place, names in told["places"] for path in sorted(pathlib.Path(place).rglob(names))]
texts = [path.read_bytes() for path in files if path.is_file()]
needles = [bytes.fromhex(needle) for needle in told["needles"]]
print(json.dumps([sum(text.count(needle) for text in texts) for needle in needles]))
"""


def facts(path: Path) -> dict[str, Row]:
    """Read every row of facts of a source database, or of a copy of it, by handle and version."""
    return _rows(path, _FACTS)


def drafts(path: Path) -> dict[str, Row]:
    """Read every checkpoint and report, by handle."""
    return _rows(path, _DRAFTS)


def points(path: Path) -> dict[str, Row]:
    """Read every point of a vector index, by tenant and id; its vector comes last, as bytes."""
    return _rows(path, _POINTS)


def answers(client: Any) -> dict[bytes, dict[bytes, bytes]]:  # noqa: ANN401 - the client's hints know no bytes
    """Read every cached answer, by walking over all keys."""
    return {key: client.hgetall(key) for key in client.scan_iter() if client.type(key) == b"hash"}


def nearest(blobs: Iterable[bytes], text: str) -> float:
    """Give the cosine of the vector that lies nearest to that of a text; -1 where there is none."""
    asked = _numbers(packed(text))
    return max((_cosine(_numbers(blob), asked) for blob in blobs), default=-1.0)


def count(places: Sequence[tuple[Path, str]], needles: Sequence[bytes]) -> list[int]:
    """Count how often the bytes of each needle stand in files: a place is a folder and the names below it.

    In a process of its own: closing a file gives up the locks that SQLite holds on it in the same
    process, and the next command would take the log of a database from under open connections.
    """
    told = {"places": [(str(folder), names) for folder, names in places], "needles": [n.hex() for n in needles]}
    command = [sys.executable, "-I", "-c", _COUNT]
    done = subprocess.run(command, input=json.dumps(told).encode(), capture_output=True, check=True)  # noqa: S603 - ours
    return [int(number) for number in json.loads(done.stdout)]


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database file by SQLite alone, and keep what was changed in it."""
    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        yield connection


def read(path: Path, query: str, *given: object) -> list[Row]:
    """Ask a database file that nobody is to change here."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(query, given).fetchall()


def _rows(path: Path, query: str) -> dict[str, Row]:
    return {row[0]: row[1:] for row in read(path, query)}


def _numbers(blob: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{DIMENSIONS}f", blob)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    length = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else -1.0
