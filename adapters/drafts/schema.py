"""Whether a source database holds the tables of drafting: made where there are none, refused where they are others."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from adapters.drafts.tables import VERSION, draft_schema, metadata
from adapters.memory.engine import reading, writing
from orchestrator import ErrorCode, Permanent

_OPENING: Final = "drafts"
"""Stands in for a tenant while the tables are made: whoever opens a database waits for whoever does."""


class SchemaError(Permanent):
    """The database holds tables of drafting of a version that this adapter does not know."""

    code = ErrorCode.STORE_REFUSED


def open_in(engine: sa.Engine) -> None:
    """Make the tables in a source database that has none of them; raises `SchemaError` for an unknown version."""
    with reading(engine) as connection:
        if is_here(connection):
            return
    with writing(engine, [_OPENING]) as connection:
        if not is_here(connection):  # another process may have been faster
            metadata.create_all(connection)
            connection.execute(draft_schema.insert().values(version=VERSION))


def is_here(connection: sa.Connection) -> bool:
    """Tell whether the tables are there; raises `SchemaError` where they are not all there, or of another version."""
    own = metadata.tables.keys() & set(sa.inspect(connection).get_table_names())
    if not own:
        return False
    versions = connection.scalars(sa.select(draft_schema.c.version)).all() if draft_schema.name in own else []
    check(own == metadata.tables.keys(), versions)
    return True


def check(complete: bool, versions: object) -> None:  # noqa: FBT001 - a condition is what it is about
    """Raise `SchemaError` unless the tables are complete and of the one version that is known."""
    if not complete or versions != [VERSION]:
        raise SchemaError
