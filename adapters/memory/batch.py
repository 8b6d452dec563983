"""A batch as a table: all of its rows in one bound parameter a column, which a statement reads like any table.

The text of a statement is then the same for every batch, so each is built once; and no
store's limit on parameters is near. What builds a statement is a plain function of the
module that needs it: it is told apart by its identity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

Row: TypeAlias = Sequence[str | int | None]
Columns: TypeAlias = tuple[tuple[str, type[str | int]], ...]
Found: TypeAlias = "sa.Row[*tuple[Any, ...]]"
Answer: TypeAlias = "sa.CursorResult[*tuple[Any, ...]]"
Build: TypeAlias = Callable[[sa.FromClause], sa.Executable]

_TYPES: Final[Mapping[type, sa.types.TypeEngine[Any]]] = {str: sa.Text(), int: sa.BigInteger()}
_SQLITE: Final = "sqlite"
PART: Final = 2_000
"""Rows that are in hand at a time where a statement gives more than there is room for."""


def columns(**types: type[str | int]) -> Columns:
    """Name the columns of a batch, and what they hold."""
    return tuple(types.items())


def look_up(connection: sa.Connection, of: Columns, rows: Sequence[Row], build: Build) -> Sequence[Found]:
    """Give the rows that a statement over a batch gives; without a batch there is nothing to ask."""
    return run(connection, _statement(connection.dialect.name, of, build), of, rows).all() if rows else []


def read_in_parts(
    connection: sa.Connection, statement: sa.Executable, of: Columns, rows: Sequence[Row]
) -> Iterator[Sequence[Found]]:
    """Run a statement that was built on `as_table`, and give what it finds some rows at a time."""
    yield from run(connection, statement.execution_options(stream_results=True), of, rows).partitions(PART)


def in_parts(
    connection: sa.Connection, query: sa.Executable, given: Mapping[str, str | int | None] | None = None
) -> Iterator[Sequence[Found]]:
    """Run a statement with parameters of its own, and give what it finds some rows at a time."""
    with connection.execute(query.execution_options(stream_results=True), given) as found:
        yield from found.partitions(PART)


def change(connection: sa.Connection, of: Columns, rows: Sequence[Row], build: Build) -> None:
    """Run a statement over a batch that gives nothing; without a batch there is nothing to change."""
    if rows:
        run(connection, _statement(connection.dialect.name, of, build), of, rows)


def insert_all(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows in the table's order of columns; raises the driver's error where one is there already."""
    if rows:
        run(connection, _insert(connection.dialect.name, table), _columns_of(table), rows)


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows in the table's order of columns; those that are there already stay as they are."""
    if rows:
        run(connection, _insert_new(connection.dialect.name, table), _columns_of(table), rows)


def insert_or_replace(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows in the table's order of columns; those with the same primary key take the new values.

    No two of the rows may have the same key.
    """
    if rows:
        run(connection, _insert_or_replace(connection.dialect.name, table), _columns_of(table), rows)


def raise_numbers(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows whose last column is a number; where there is one with the same key, the greater number stays.

    No two of the rows may have the same key.
    """
    if rows:
        run(connection, _raise_numbers(connection.dialect.name, table), _columns_of(table), rows)


def insert_or_set(
    connection: sa.Connection, table: sa.Table, row: Mapping[str, Any], set_: Mapping[str, Any]
) -> sa.Row[Any]:
    """Insert a row, or change the one with the same primary key; give the row back."""
    insert = _insert_into(connection.dialect.name, table).values(dict(row))
    keys = list(table.primary_key)
    return connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=dict(set_)).returning(table)).one()


def as_table(dialect: str, of: Columns) -> sa.FromClause:
    """Give the table that a batch is, for `run` to fill."""
    if dialect == _SQLITE:
        each = sa.func.json_each(sa.bindparam("given", type_=sa.Text())).table_valued("value")
        parts = [
            sa.func.json_extract(each.c.value, sa.literal_column(f"'$[{n}]'"), type_=_TYPES[type_]).label(name)
            for n, (name, type_) in enumerate(of)
        ]
        return sa.select(*parts).subquery("given")
    arrays = [sa.bindparam(f"given_{name}", type_=postgresql.ARRAY(_TYPES[type_])) for name, type_ in of]
    named = [sa.column(name, _TYPES[type_]) for name, type_ in of]
    return sa.func.unnest(*arrays).table_valued(*named, name="given").render_derived()


def run(
    connection: sa.Connection, statement: sa.Executable, of: Columns, rows: Sequence[Row], **more: str | int | None
) -> Answer:
    """Run a statement that was built on `as_table` with the rows of a batch, and `more` parameters of its own."""
    if connection.dialect.name == _SQLITE:
        return connection.execute(statement, {"given": json.dumps(rows, ensure_ascii=False), **more})
    arrays = {f"given_{name}": [row[n] for row in rows] for n, (name, _) in enumerate(of)}
    return connection.execute(statement, {**arrays, **more})


@cache
def _statement(dialect: str, of: Columns, build: Build) -> sa.Executable:
    return build(as_table(dialect, of))


@cache
def _insert(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    of = _columns_of(table)
    # SQLite reads ON CONFLICT after a bare FROM as a join's ON; a WHERE ends the FROM.
    query = sa.select(as_table(dialect, of)).where(sa.literal_column("1") == sa.literal_column("1"))
    return _insert_into(dialect, table).from_select([name for name, _ in of], query)


@cache
def _insert_new(dialect: str, table: sa.Table) -> sa.Executable:
    return _insert(dialect, table).on_conflict_do_nothing()


@cache
def _insert_or_replace(dialect: str, table: sa.Table) -> sa.Executable:
    insert = _insert(dialect, table)
    values = {c.name: insert.excluded[c.name] for c in table.columns if not c.primary_key}
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=values)


@cache
def _raise_numbers(dialect: str, table: sa.Table) -> sa.Executable:
    insert, number = _insert(dialect, table), list(table.columns)[-1]
    given = insert.excluded[number.name]
    greatest = sa.case((number > given, number), else_=given)
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_={number.name: greatest})


@cache
def _columns_of(table: sa.Table) -> Columns:
    return tuple((c.name, str if isinstance(c.type, sa.Text) else int) for c in table.columns)


def _insert_into(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == _SQLITE else postgresql.insert(table)
