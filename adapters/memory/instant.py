"""Points in time as the two databases keep them, compared in SQL to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SQLITE_NAME: Final = "instant_us"


def micros(at: datetime) -> int:
    """Give microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


def micros_of_text(text: str | None) -> int | None:
    """Give the microseconds of ISO text with any offset; None for what names no instant: nothing is due by it."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return None if at.tzinfo is None else micros(at)


class InstantUs(sa.sql.functions.FunctionElement[int]):
    """Microseconds since 1970 of a column of instants; on SQLite by a function of our own connections."""

    type = sa.BigInteger()
    name = SQLITE_NAME
    inherit_cache = True


@compiles(InstantUs, "sqlite")
def _on_sqlite(element: InstantUs, compiler: Any, **how: Any) -> str:  # noqa: ANN401 - as above
    return f"{SQLITE_NAME}({compiler.process(element.clauses, **how)})"


@compiles(InstantUs, "postgresql")
def _on_postgresql(element: InstantUs, compiler: Any, **how: Any) -> str:  # noqa: ANN401 - as above
    # Of numeric type, so that no microsecond is lost.
    return f"CAST(extract(epoch FROM {compiler.process(element.clauses, **how)}) * 1000000 AS bigint)"
