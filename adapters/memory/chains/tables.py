"""The tables of the chains: memories and deletions as any provenance file has them, tenants beside them by id."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.chains.errors import SchemaError

VERSION: Final = 2
"""Of memories and deletions."""

metadata = sa.MetaData()


class Instant(sa.types.TypeDecorator[datetime]):
    """A point in time. SQLite has no such type: there it is ISO text in UTC, and read from any offset."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Choose the column's type."""
        return dialect.type_descriptor(sa.Text() if dialect.name == "sqlite" else sa.DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:  # noqa: ANN401 - as the column
        """Give what the column keeps."""
        utc = None if value is None else value.astimezone(UTC)
        return utc.isoformat() if utc is not None and dialect.name == "sqlite" else utc

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ANN401, ARG002
        """Read what the column keeps; raises `SchemaError` for what names no instant."""
        return None if value is None else read_instant(value)


def read_instant(value: str | datetime) -> datetime:
    """Give an instant in UTC; a time without an offset names none, and raises `SchemaError`."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        message = "a time in the database names no instant"
        raise SchemaError(message) from None
    return found.astimezone(UTC)


_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ID: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

memories: Final = sa.Table(
    "memories",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("user_id", _TEXT, nullable=False),
    sa.Column("task_id", _TEXT),  # null: seen from all tasks of the user
    sa.Column("text", _TEXT, sa.CheckConstraint("trim(text) <> ''"), nullable=False),
    sa.Column("source", _TEXT, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sa.Column("supersedes", _ID, sa.ForeignKey("memories.id"), unique=True),
    sa.Index("memories_scope", "user_id", "task_id"),
    # An id is drawn before its row is written: who is bound to a tenant sees no row that has none yet.
    implicit_returning=False,
    sqlite_autoincrement=True,  # no id is given twice: a record of a deletion never names another memory
)

deletions: Final = sa.Table(
    "deletions",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("user_id", _TEXT, nullable=False),
    sa.Column("memory_ids", _TEXT, nullable=False),  # a JSON list
    sa.Column("reason", _TEXT, nullable=False),
    sa.Column("deleted_at", Instant, nullable=False),
)

# A memory without a row here is nobody's.
memory_tenants: Final = sa.Table(
    "memory_tenants",
    metadata,
    sa.Column("memory_id", _ID, sa.ForeignKey("memories.id"), primary_key=True, autoincrement=False),
    sa.Column("tenant", _TEXT, nullable=False),
    sa.Column("revoked", sa.BigInteger, nullable=False),  # 1: handed out no more, and still to be erased
)

deletion_tenants: Final = sa.Table(
    "deletion_tenants",
    metadata,
    sa.Column("deletion_id", _ID, sa.ForeignKey("deletions.id"), primary_key=True, autoincrement=False),
    sa.Column("tenant", _TEXT, nullable=False),
)

# Where the database is shared, its user_version is somebody else's.
chain_schema: Final = sa.Table("chain_schema", metadata, sa.Column("version", sa.BigInteger, nullable=False))

BESIDE: Final = (memory_tenants, deletion_tenants)
