"""`expunge tombstone check`: the gate for pipelines that are not ours, over the control database's copy."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.bootstrap import context
from orchestrator.cli.failures import REFUSED
from orchestrator.cli.options import AsJson, StateDir, opened, show
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.scope import Scope
from orchestrator.gate.decide import Origin, Write
from orchestrator.store.tombstones import SqlTombstones

app = typer.Typer(help="Ask the gate.", no_args_is_help=True)


@app.callback()
def family() -> None:
    """Ask the gate whether something may be learned again."""


@app.command(
    epilog="Example: expunge tombstone check --tenant acme --user ann --project trips --source chat/turn-6 "
    '--position 7 --text "The seat is 12A."'
)
def check(
    tenant: Annotated[str, typer.Option(help="Organisation of the user.")],
    user: Annotated[str, typer.Option(help="Whose data.")],
    source: Annotated[str, typer.Option(help="Where it was learned.")],
    position: Annotated[int, typer.Option(help="Accepted position of the source.", min=0)],
    text: Annotated[str, typer.Option(help="What is to be stored.")],
    project: Annotated[
        str | None, typer.Option(help="Project; without it, what holds for the user in general.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Under which key.")] = None,
    derived_from: Annotated[list[str] | None, typer.Option(help="An ancestor of the source; may be repeated.")] = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Exit 0 where a write is allowed, 3 where a tombstone refuses it."""
    for name, value in (("source", source), ("text", text)):
        if not value.strip():
            raise InvalidRequest(f"--{name} must not be empty", field=name)
    with opened(directory) as control:
        gate = context(control).gate
        write = Write(
            scope=Scope(tenant=tenant, user=user, project=project),
            key=key,
            text=text,
            origin=Origin(id=source, position=position, ancestors=frozenset(derived_from or [])),
        )
        with control.database.begin() as connection:
            refusal = gate.decide(write, SqlTombstones(connection))
    word = "allowed" if refusal is None else f"refused: {refusal.sentence}"
    show({"allowed": refusal is None, "code": refusal}, [word], as_json=as_json)
    raise typer.Exit(0 if refusal is None else REFUSED)
