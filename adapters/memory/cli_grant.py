"""`expunge memory grant`: a role of PostgreSQL for applications, which sees the rows of one tenant at a time."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from adapters.memory.engine import writing
from adapters.memory.shell import State, opened
from orchestrator import InvalidRequest

EXAMPLE: Final = "Example: expunge memory grant application"
_WAIT_MS: Final = 3_000
"""Milliseconds for which a table is waited for: whoever comes meanwhile waits behind this command."""


def grant(
    role: Annotated[
        str, typer.Argument(help="Role of applications, made before by CREATE ROLE ... LOGIN.", show_default=False)
    ],
    state: State = None,
) -> None:
    """Bind a PostgreSQL role to row-level security, and give it what the libraries need and nothing else.

    Run it with the URL of the tables' owner, whom no policy binds, as workers need it; applications open the store
    under the role. Tables of facts and memories are made where there are none. Run it again when other tables were made
    later, of drafts say, and after an upgrade: a second run changes nothing.
    """
    with opened(state) as adapter:
        engine = adapter._engine  # noqa: SLF001 - this command is a part of the adapter
        if engine.dialect.name != "postgresql":
            message = "row-level security needs PostgreSQL: whoever may open a SQLite file sees all of it"
            raise InvalidRequest(message, field="url")
        from adapters.memory import postgresql_rows  # noqa: PLC0415 - its driver loads only where it is used

        adapter.chains  # noqa: B018 - makes the tables of memories
        with writing(engine, (), wait_ms=_WAIT_MS) as connection:
            granted = postgresql_rows.grant(connection, role)
    typer.echo(f"granted: {len(granted.tables)} tables")
    if granted.missing:
        typer.echo(f"not there yet, and to be granted again when they are: {', '.join(granted.missing)}")
