"""Many rows in one statement, at the driver's own speed: the hot path writes with these alone.

SQLAlchemy builds its parameters row by row, which costs more than SQLite takes to store them.
SQLite gets the rows by the driver's executemany; PostgreSQL gets one array for each column,
in one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa

Rows = Sequence[Mapping[str, Any]]
KEEP = "DO NOTHING"
CHUNK = 5_000
_KINDS: Final = {sa.Text: "text", sa.BigInteger: "bigint", sa.LargeBinary: "bytea"}


def insert(connection: sa.Connection, table: sa.Table, rows: Rows, *, conflict: str | None = None) -> None:
    """Insert rows that name the same columns; `conflict` says in SQL what becomes of those that are there already."""
    if not rows:
        return
    names = list(rows[0])
    tail = "" if conflict is None else f" ON CONFLICT {conflict}"
    head = f"INSERT INTO {table.name} ({', '.join(names)})"
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(names))
        _many(connection, f"{head} VALUES ({marks}){tail}", names, rows)
        return
    text = f"{head} SELECT * FROM {_unnest(table, names)}{tail}"  # noqa: S608 - names of our own columns
    for chunk in _chunks(rows):
        connection.exec_driver_sql(text, tuple([row[n] for row in chunk] for n in names))


def update(connection: sa.Connection, table: sa.Table, key: str, rows: Rows) -> None:
    """Set the columns that the rows name besides `key`, each row by its key."""
    if not rows:
        return
    names = [name for name in rows[0] if name != key]
    if connection.dialect.name == "sqlite":
        sets = ", ".join(f"{name} = ?" for name in names)
        # The names are columns of our own tables; every value is bound.
        _many(connection, f"UPDATE {table.name} SET {sets} WHERE {key} = ?", [*names, key], rows)  # noqa: S608
        return
    sets = ", ".join(f"{name} = new.{name}" for name in names)
    for chunk in _chunks(rows):
        given = f"{_unnest(table, [key, *names])} AS new ({', '.join([key, *names])})"
        text = f"UPDATE {table.name} SET {sets} FROM {given} WHERE {table.name}.{key} = new.{key}"  # noqa: S608
        connection.exec_driver_sql(text, tuple([row[n] for row in chunk] for n in (key, *names)))


def _many(connection: sa.Connection, text: str, names: Sequence[str], rows: Rows) -> None:
    # Of one name alone an itemgetter gives the bare value.
    values = map(itemgetter(*names), rows) if len(names) > 1 else ((row[names[0]],) for row in rows)
    connection.exec_driver_sql(text, list(values))


def _chunks(rows: Rows) -> list[Rows]:
    return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]


def _unnest(table: sa.Table, names: Sequence[str]) -> str:
    kinds = [_KINDS[type(table.c[name].type)] for name in names]
    return f"unnest({', '.join(f'%s::{kind}[]' for kind in kinds)})"
