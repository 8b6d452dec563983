"""Bringing a provenance file up to what this store works with, in the caller's transaction.

Version 1 knows no expiry and no corrections. A version 2 of another program may give an id a
second time. Both get the table of memories made anew, with every row under its id. A new file
is made as version 1, so it takes the same path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from adapters.memory.chains.errors import SchemaError
from adapters.memory.chains.scope import DEFAULT_TENANT
from adapters.memory.chains.tables import BESIDE, VERSION, deletions, memories
from adapters.memory.tables import making

_DIALECT: Final = sqlite.dialect()
_NEW: Final = "memories_new"
_KEPT: Final = "id, user_id, task_id, text, source, created_at"
_ALL: Final = f"{_KEPT}, expires_at, supersedes"


def _anew(columns: str) -> tuple[str, ...]:
    """Give the statements that make the table of memories anew and keep these columns."""
    _table, *indexes = making([memories], _DIALECT)
    return (
        str(CreateTable(memories.to_metadata(sa.MetaData(), name=_NEW)).compile(dialect=_DIALECT)),
        f"INSERT INTO {_NEW} ({columns}) SELECT {columns} FROM memories ORDER BY id",  # noqa: S608 - names of ours
        "DROP TABLE memories",
        f"ALTER TABLE {_NEW} RENAME TO memories",
        *indexes,
    )


VERSION_1: Final = (
    """CREATE TABLE memories (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, task_id TEXT,
        text TEXT NOT NULL CHECK (trim(text) <> ''), source TEXT NOT NULL, created_at TEXT NOT NULL)""",
    "PRAGMA user_version = 1",
)
MIGRATION: Final = (*_anew(_KEPT), *making([deletions], _DIALECT), f"PRAGMA user_version = {VERSION}")
# What was recorded as deleted is no id for a new memory either.
TAKING_OVER: Final = (
    *_anew(_ALL),
    "DELETE FROM sqlite_sequence WHERE name = 'memories'",
    """INSERT INTO sqlite_sequence (name, seq) SELECT 'memories', max(
        (SELECT coalesce(max(id), 0) FROM memories),
        (SELECT coalesce(max(each.value), 0) FROM deletions, json_each(memory_ids) AS each))""",
)
# Idempotent: another program may have written to the file since it was last opened.
_TENANTS: Final = (
    f"""INSERT INTO memory_tenants (memory_id, tenant, revoked) SELECT id, '{DEFAULT_TENANT}', 0 FROM memories
        WHERE id NOT IN (SELECT memory_id FROM memory_tenants)""",  # noqa: S608 - a name of ours
    f"""INSERT INTO deletion_tenants (deletion_id, tenant) SELECT id, '{DEFAULT_TENANT}' FROM deletions
        WHERE id NOT IN (SELECT deletion_id FROM deletion_tenants)""",  # noqa: S608 - a name of ours
)


def create(connection: sa.Connection) -> None:
    """Make the tables of version 1 in an empty file."""
    _run(connection, VERSION_1)


def migrate(connection: sa.Connection, steps: Sequence[str]) -> None:
    """Bring a file up: if a step fails, nothing has happened.

    Raises `SchemaError` for a row that this version does not allow.
    """
    try:
        _run(connection, steps)
    except sa.exc.IntegrityError:
        message = "the file holds a row that version 2 does not allow"
        raise SchemaError(message) from None


def make_tables_beside(connection: sa.Connection) -> None:
    """Make the tables of tenants."""
    _run(connection, tuple(making(BESIDE, _DIALECT)))


def give_to_default_tenant(connection: sa.Connection) -> None:
    """Give what has no tenant to the default one."""
    _run(connection, _TENANTS)


def _run(connection: sa.Connection, steps: Sequence[str]) -> None:
    for step in steps:
        connection.exec_driver_sql(step)
