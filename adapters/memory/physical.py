"""The files of a database: scrubbed once for many jobs, kept still while they are looked at.

A SQLite file can be rewritten and looked at. PostgreSQL's can not, by a client: what stays
there is named.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from adapters.memory.engine import reading, writing
from adapters.memory.tables import fact_candidates, facts, preference_events, preferences
from orchestrator import AdapterContext, ScrubReport, sqlite_files

WAIT_MS: Final = 5_000
"""How long a scrub waits for those who use the file, before it says that they are busy."""
_MARKERS: Final = "scan_markers"
_OTHERS: Final = ("memories", "drafts")
"""Tables of the same file that hold texts, where they are there: one column of theirs is called so."""


class DatabaseFiles(ABC):
    """What the engine asks of a database whose bytes it looks at."""

    def __init__(self, name: str, engine: sa.Engine, context: AdapterContext) -> None:
        """Bind it to the database, whose group of files begins with `name`; nothing is opened."""
        self._engine, self._context = engine, context
        self._path = Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None
        # A name of the files that says nothing of where they lie, or of who may open them.
        place = engine.url.set(password=None).render_as_string()
        self.file_group = f"{name}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"

    def scrub(self) -> ScrubReport:
        """Rewrite the file without what was deleted; unsupported where it is no file of ours."""
        if self._path is None:
            from adapters.memory.postgresql_reach import reach  # noqa: PLC0415 - of the one database alone

            with reading(self._engine) as connection:
                return reach(connection, self._context)
        return sqlite_files.scrub(self._path, wait_ms=WAIT_MS)

    @contextmanager
    def live_files(self) -> Iterator[Sequence[Path]]:
        """Give the database file and its sidecars, and keep writers waiting meanwhile; raises `StoreLocked`."""
        assert self._path is not None, "what cannot be scrubbed is not looked at"  # noqa: S101
        with sqlite_files.kept_still(self._path, wait_ms=WAIT_MS) as files:
            yield files

    @abstractmethod
    def live_values(self) -> Iterable[bytes]:
        """Give the values of all live records, as the file holds them."""

    def plant(self, marker: bytes) -> None:
        """Store a marker as a live record; those that a scan has left which died are taken away."""
        if self._path is None:
            return  # nobody is going to look for it
        with writing(self._engine, []) as connection:
            connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {_MARKERS} (marker TEXT NOT NULL)")
            connection.exec_driver_sql(f"DELETE FROM {_MARKERS}")  # noqa: S608 - a name of ours
            markers = sa.table(_MARKERS, sa.column("marker"))
            connection.execute(markers.insert().values(marker=marker.decode()))

    def uproot(self, marker: bytes) -> None:
        """Take a marker away."""
        if self._path is None:
            return
        with writing(self._engine, []) as connection:
            markers = sa.table(_MARKERS, sa.column("marker"))
            connection.execute(markers.delete().where(markers.c.marker == marker.decode()))


class SourceFiles(DatabaseFiles):
    """The files of the source database."""

    def __init__(self, engine: sa.Engine, context: AdapterContext) -> None:
        """Bind it to the database; nothing is opened."""
        super().__init__("source", engine, context)

    def live_values(self) -> Iterator[bytes]:
        """Give the texts of all live records, as the file holds them."""
        with reading(self._engine) as connection:
            for value in (table.c.value for table in (facts, preference_events, preferences, fact_candidates)):
                values = sa.select(value).where(value.is_not(None))
                yield from (str(text).encode() for (text,) in connection.execute(values))
            for table in _OTHERS:
                if sa.inspect(connection).has_table(table):
                    texts = connection.exec_driver_sql(f"SELECT text FROM {table}")  # noqa: S608 - names of ours
                    yield from (str(text).encode() for (text,) in texts)
