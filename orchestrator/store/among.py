"""Many ids as one parameter: however many there are, the statement stays the same text, built and planned once.

`column.in_(ids)` has a parameter for each id, which SQLAlchemy writes into the text anew at every call.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles


class _Ids(sa.types.TypeDecorator[Collection[str]]):
    """Ids: an array for PostgreSQL, JSON for SQLite, which has no arrays."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Give the database's own type."""
        kind: sa.types.TypeEngine[Any] = sa.Text() if dialect.name == "sqlite" else sa.ARRAY(sa.Text)
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Collection[str] | None, dialect: sa.Dialect) -> object:
        """Give the ids in the form that the driver takes."""
        ids = list(value or ())
        return json.dumps(ids) if dialect.name == "sqlite" else ids


class among(sa.sql.functions.FunctionElement[bool]):  # noqa: N801 - it stands among SQL functions
    """The condition that a column is one of the ids which the statement is given under the name `ids`."""

    type = sa.Boolean()
    inherit_cache = True

    def __init__(self, column: sa.ColumnElement[str]) -> None:
        """Compare `column` with the ids."""
        super().__init__(column, sa.bindparam("ids", type_=_Ids))

    def self_group(self, against: object = None) -> Self:
        """Stand as it is among other conditions: SQLAlchemy would compare it with 1, and SQLite use no index."""
        del against
        return self


@compiles(among, "sqlite")
def _among_sqlite(element: among, compiler: sa.sql.compiler.SQLCompiler, **options: object) -> str:
    column, ids = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({ids}))"  # noqa: S608 - both are compiled


@compiles(among, "postgresql")
def _among_postgresql(element: among, compiler: sa.sql.compiler.SQLCompiler, **options: object) -> str:
    column, ids = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY ({ids})"
