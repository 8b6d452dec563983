"""Whether a source database holds the tables of drafting: made where there are none, refused where they are others.

An earlier version is brought up to this one by whoever opens it; what it holds stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from adapters.drafts.tables import VERSION, approvals, draft_schema, metadata, step_dependencies
from adapters.memory.engine import BUSY_MS, reading, writing
from orchestrator import ErrorCode, Permanent

_OPENING: Final = "drafts"
"""Stands in for a tenant while the tables are made: whoever opens a database waits for whoever does."""
_CAME_WITH: Final[Mapping[int, tuple[sa.Table, ...]]] = {2: (step_dependencies, approvals)}


class SchemaError(Permanent):
    """The database holds tables of drafting of a version that this adapter does not know."""

    code = ErrorCode.STORE_REFUSED


def open_in(engine: sa.Engine) -> None:
    """Make the tables in a source database, or bring them up; raises `SchemaError` for an unknown version."""
    with reading(engine) as connection:
        if _version(connection) == VERSION:
            return
    with writing(engine, [_OPENING]) as connection:
        version = _version(connection)  # another process may have been faster
        if version is None:
            metadata.create_all(connection)
            connection.execute(draft_schema.insert().values(version=VERSION))
        else:
            _bring_up(connection, version)


def bring_up(engine: sa.Engine, *, wait_ms: int = BUSY_MS) -> None:
    """Bring tables of an earlier version up to this one; where there are none, none are made."""
    with reading(engine, wait_ms=wait_ms) as connection:
        if _version(connection) in {None, VERSION}:
            return
    with writing(engine, [_OPENING], wait_ms=wait_ms) as connection:
        version = _version(connection)
        if version is not None:
            _bring_up(connection, version)


def is_here(connection: sa.Connection) -> bool:
    """Tell whether the tables are there; raises `SchemaError` where they are not all there, or of another version."""
    version = _version(connection)
    if version not in {None, VERSION}:
        raise SchemaError
    return version is not None


def check(complete: bool, versions: object) -> None:  # noqa: FBT001 - a condition is what it is about
    """Raise `SchemaError` unless the tables are complete and of the one version that is known."""
    if not complete or versions != [VERSION]:
        raise SchemaError


def _bring_up(connection: sa.Connection, version: int) -> None:
    for later in range(version + 1, VERSION + 1):
        metadata.create_all(connection, tables=_CAME_WITH[later], checkfirst=False)
    connection.execute(draft_schema.update().values(version=VERSION))


def _version(connection: sa.Connection) -> int | None:
    """Give the version of tables that are complete, None where there are none."""
    own = metadata.tables.keys() & set(sa.inspect(connection).get_table_names())
    if not own:
        return None
    versions = connection.scalars(sa.select(draft_schema.c.version)).all() if draft_schema.name in own else []
    if len(versions) != 1 or own != _tables(versions[0]):
        raise SchemaError
    return int(versions[0])


def _tables(version: int) -> set[str]:
    """Name the tables of a version; none of a version that is not known."""
    if not 0 < version <= VERSION:
        return set()
    later = {table.name for came, tables in _CAME_WITH.items() if came > version for table in tables}
    return metadata.tables.keys() - later
