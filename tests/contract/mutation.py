"""How an adapter is made to go wrong: some of its methods are overridden."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from orchestrator import EraseOrder, StorageAdapter

Mutation: TypeAlias = Callable[[Any], None]
Orders: TypeAlias = Sequence[EraseOrder]


class FilesUnderTest(Protocol):
    """A store under test whose bytes are looked at; `file` is where its adapter keeps a marker."""

    adapter: Any
    file: Path


def override(adapter: StorageAdapter, **methods: Callable[..., object]) -> None:
    vars(adapter).update(methods)


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database behind its adapter's back; each statement commits."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection
