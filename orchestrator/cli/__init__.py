"""The commands: one file a family; adapters and workers contribute theirs by entry point."""

from __future__ import annotations

import os
import sys
from importlib.metadata import distribution, entry_points
from typing import Annotated

import typer

from orchestrator.cli import failures, file, follow, gate, hold, report, scan, start, steer
from orchestrator.domain.errors import InvalidRequest
from orchestrator.state_directory import OTHERS

GROUP = "expunge.commands"


def build(asked: str = "") -> typer.Typer:
    """Put the commands together, ours and contributed ones; of those only what `asked` names, where it names one."""
    app = typer.Typer(
        name="expunge",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(expunge)
    for family in (start, file, follow, report, steer, scan):
        family.add_to(app)
    app.add_typer(hold.app, name="hold")
    app.add_typer(gate.app, name="tombstone")
    ours = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    contributed = {point.name: point for point in entry_points(group=GROUP)}
    known = ours | {group.name for group in app.registered_groups} | contributed.keys()
    for name, point in sorted(contributed.items()):
        if asked in known and asked != name:
            continue  # it would load the libraries of a store that nobody asks for
        command = point.load()
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=point.name)
        else:
            app.command(point.name)(command)
    return app


def _tell_version(wanted: bool) -> None:  # noqa: FBT001 - Typer hands a flag over like this
    if wanted:
        typer.echo(f"expunge {distribution('expunge').version}")
        raise typer.Exit


def expunge(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print name and version.")
    ] = False,
) -> None:
    """Carry a forget request to a proven end.

    Exit codes: 0 done, 1 failed, 2 usage, 3 refused by a rule, 4 parked or held, 5 nothing found.
    """


def main() -> None:
    """Run a command; whatever stops it is a line or two on standard error and an exit code."""
    # What we write names people or holds keys, or may do so tomorrow: it is for nobody else.
    os.umask(OTHERS)
    try:
        _check_words()
        code = typer.main.get_command(build(*sys.argv[1:2])).main(prog_name="expunge", standalone_mode=False)
    except BaseException as error:  # noqa: BLE001 - the outermost place: nothing may end in a stack trace
        code = failures.tell(error)
    sys.exit(code if isinstance(code, int) else 0)


def _check_words() -> None:
    """Refuse a word that is no text: it could be neither stored nor compared."""
    for number, word in enumerate(sys.argv[1:], 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            message = f"word {number} of the command line is no text in UTF-8"
            raise InvalidRequest(message, field="argv") from None
