"""Which databases this store opens: what is not known exactly is refused, and left as it is.

A provenance file has its version in `user_version` and nothing but tables of this store. The
source database is shared: there `user_version` belongs to the scoped store, and this one
looks at its own tables and its own version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from enum import Enum, auto
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

import sqlalchemy as sa

from adapters.memory.chains.errors import SchemaError
from adapters.memory.chains.migration import (
    MIGRATION,
    TAKING_OVER,
    VERSION_1,
    create,
    give_to_default_tenant,
    make_tables_beside,
    migrate,
)
from adapters.memory.chains.tables import BESIDE, VERSION, chain_schema, metadata

Shape: TypeAlias = tuple[frozenset[tuple[Any, ...]], ...]
_BESIDE: Final = frozenset(table.name for table in BESIDE)


class FileKind(Enum):
    """What a file was found to be."""

    EMPTY = auto()
    VERSION_1 = auto()
    FOREIGN_2 = auto()  # version 2, written by another program
    OURS = auto()

    @property
    def is_old(self) -> bool:
        """Whether somebody else has written and deleted in it."""
        return self in {FileKind.VERSION_1, FileKind.FOREIGN_2}


class Execute(Protocol):
    """Runs a statement on SQLite."""

    def __call__(self, statement: str, /) -> Any:  # noqa: ANN401 - a cursor of either kind
        """Give its cursor."""


def judge(connection: sa.Connection) -> FileKind:
    """Tell what a file is; raises `SchemaError` naming the version for one that is not known."""
    version: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    tables = frozenset(sa.inspect(connection).get_table_names())
    shapes = {name: _shape(connection.exec_driver_sql, name) for name in sorted(tables)}
    if version == 0 and not tables:
        return FileKind.EMPTY
    if version == 1 and shapes == _known(VERSION_1):
        return FileKind.VERSION_1
    if version == VERSION and {n: s for n, s in shapes.items() if n not in _BESIDE} == _known((*VERSION_1, *MIGRATION)):
        if not _BESIDE & tables:
            return FileKind.FOREIGN_2
        if tables >= _BESIDE:
            return FileKind.OURS
    raise SchemaError(f"version {version} with these tables is none that this store knows", version=version)


def bring_up(connection: sa.Connection, migration: Sequence[str] = MIGRATION) -> None:
    """Make, migrate or take over the tables of a file in one write transaction: all of it is done, or nothing."""
    kind = judge(connection)
    if kind is FileKind.EMPTY:
        create(connection)
    if kind in {FileKind.EMPTY, FileKind.VERSION_1}:
        migrate(connection, migration)
    if kind is FileKind.FOREIGN_2:
        migrate(connection, TAKING_OVER)
    if kind is not FileKind.OURS:
        make_tables_beside(connection)
    give_to_default_tenant(connection)


def bring_up_shared(connection: sa.Connection) -> None:
    """Make the tables in a source database that has none of them; raises `SchemaError` for an unknown version."""
    own = metadata.tables.keys() & set(sa.inspect(connection).get_table_names())
    if not own:
        metadata.create_all(connection)
        connection.execute(chain_schema.insert().values(version=VERSION))
        return
    versions = connection.scalars(sa.select(chain_schema.c.version)).all() if chain_schema.name in own else []
    if own != metadata.tables.keys() or versions != [VERSION]:
        version = versions[0] if versions else 0
        raise SchemaError(f"version {version} of the chains is none that this store knows", version=version)


@cache
def _known(steps: Sequence[str]) -> Mapping[str, Shape]:
    """Give the shapes of the tables that statements make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for step in steps:
            model.execute(step)
        rows = model.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite$_%' ESCAPE '$'"
        )
        return {name: _shape(model.execute, name) for (name,) in rows.fetchall()}


def _shape(execute: Execute, table: str) -> Shape:
    """Give what queries rest on: columns and which may be null, foreign keys, and what is unique."""
    quoted = '"' + table.replace('"', '""') + '"'
    columns = execute(f"PRAGMA table_info({quoted})").fetchall()
    keys = execute(f"PRAGMA foreign_key_list({quoted})").fetchall()
    unique = [row[1] for row in execute(f"PRAGMA index_list({quoted})").fetchall() if row[2] and not row[4]]
    return (
        frozenset((name, bool(notnull or key), key) for _n, name, _type, notnull, _default, key in columns),
        frozenset((column, parent, parents or "id") for _id, _seq, parent, column, parents, *_actions in keys),
        frozenset(_columns_of(execute, index) for index in unique),
    )


def _columns_of(execute: Execute, index: str) -> tuple[str, ...]:
    quoted = '"' + index.replace('"', '""') + '"'
    return tuple(row[2] for row in execute(f"PRAGMA index_info({quoted})").fetchall())
