"""The commands: one file a family; adapters and workers contribute theirs by entry point."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import click
import typer

from orchestrator.cli import file, follow, gate, hold, start, steer
from orchestrator.domain.errors import ExpungeError, InvalidRequest, KeyringUnusable, Refused

GROUP = "expunge.commands"
USAGE, FAILED, REFUSED = 2, 1, 3


def build() -> typer.Typer:
    """Put the commands together, ours and contributed ones."""
    app = typer.Typer(
        name="expunge",
        help="Carry a forget request to a proven end. Exit codes: 0 done, 1 failed, 2 usage, 3 refused by a rule, "
        "4 parked or held, 5 nothing found.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    for family in (start, file, follow, steer):
        family.add_to(app)
    app.add_typer(hold.app, name="hold")
    app.add_typer(gate.app, name="tombstone")
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        command = point.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:
            app.command(point.name)(command)
    return app


def main() -> None:
    """Run a command; a user's mistake is one line on standard error and an exit code."""
    try:
        sys.exit(typer.main.get_command(build()).main(standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except click.Abort:
        sys.exit(130)
    except ExpungeError as error:
        typer.echo(f"expunge: {error}", err=True)
        sys.exit(exit_code(error))


def exit_code(error: ExpungeError) -> int:
    """Give the documented exit code of an error."""
    match error:
        case InvalidRequest() | KeyringUnusable():
            return USAGE
        case Refused():
            return REFUSED
        case _:
            return FAILED
