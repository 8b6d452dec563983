"""The commands: one file a family; adapters and workers contribute theirs by entry point."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from orchestrator.cli import failures, file, follow, gate, hold, start, steer

GROUP = "expunge.commands"


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
    """Run a command; whatever stops it is a line or two on standard error and an exit code."""
    try:
        code = typer.main.get_command(build()).main(prog_name="expunge", standalone_mode=False)
    except BaseException as error:  # noqa: BLE001 - the outermost place: nothing may end in a stack trace
        code = failures.tell(error)
    sys.exit(code if isinstance(code, int) else 0)
