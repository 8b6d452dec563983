"""Times in the control database: microseconds since 1970 UTC, and the database's own clock."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles


def micros(at: datetime) -> int:
    """Give an aware datetime as microseconds since 1970 UTC."""
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def moment(us: int) -> datetime:
    """Give microseconds since 1970 UTC as an aware datetime."""
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)


class now_us(sa.sql.functions.FunctionElement[int]):  # noqa: N801 - it stands among SQL functions
    """The database's own clock in microseconds UTC: leases and due times compare with nothing else."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(now_us, "sqlite")
def _now_sqlite(_element: now_us, _compiler: object, **_: object) -> str:
    # julianday has a resolution of about 40 microseconds today; unixepoch('subsec') needs SQLite 3.42.
    return "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"


@compiles(now_us, "postgresql")
def _now_postgresql(_element: now_us, _compiler: object, **_: object) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"


def read_now(connection: sa.Connection) -> int:
    """Read the database's clock, in microseconds since 1970."""
    now: int = connection.execute(_NOW).scalar_one()
    return now


_NOW = sa.select(now_us())
