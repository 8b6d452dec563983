"""What a person sees of whatever stops a command: a line or two, and an exit code.

No stack trace and no text of a foreign error: either may hold somebody's data.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Final, cast

import sqlalchemy as sa
import structlog
import typer

from orchestrator import logs
from orchestrator.cli.options import printable
from orchestrator.domain.errors import ExpungeError, InvalidRequest, KeyringUnusable, Refused
from orchestrator.unusable import advice

FAILED, USAGE, REFUSED, STOPPED = 1, 2, 3, 130
# What the command line was wrong about. Some releases of Typer take it from Click and some bring their own, so it is
# reached by the one of its heirs that Typer names in public.
MISTAKE: Final = cast("type[Exception]", typer.BadParameter.__bases__[0].__bases__[0])


def tell(error: BaseException) -> int:
    """Say on standard error what has stopped a command, and give the exit code."""
    match error:
        case SystemExit():
            # What writes to a reader that has gone is ended by Typer and Rich with a code of their own.
            return _reader_gone() if isinstance(error.__context__, BrokenPipeError) else _status(error.code)
        case BrokenPipeError():
            return _reader_gone()
        case KeyboardInterrupt() | typer.Abort():
            return STOPPED
        case typer.Exit():
            return error.exit_code
        case ExpungeError():
            return _say(str(error), exit_code(error))
        case sa.exc.DBAPIError() if (said := advice(error)) is not None:
            return _say(said, FAILED)
        case OSError(filename=str() as name):
            return _say(f"cannot use {name}: {error.strerror}", FAILED)
        case _ if isinstance(error, MISTAKE):
            return _mistake(error)
        case _:
            return _defect(error)


def exit_code(error: ExpungeError) -> int:
    """Give the documented exit code of an error."""
    match error:
        case InvalidRequest() | KeyringUnusable():
            return USAGE
        case Refused():
            return REFUSED
        case _:
            return FAILED


def _say(line: str, code: int) -> int:
    typer.echo(f"expunge: {printable(line)}", err=True)
    return code


def _status(code: object) -> int:
    if isinstance(code, int):
        return code
    return 0 if code is None else _say(str(code), FAILED)


def _reader_gone() -> int:
    # The interpreter writes out what is left when it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return STOPPED


def _mistake(error: Any) -> int:  # noqa: ANN401 - of a class that Typer does not name
    said = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "expunge"
    # Without a message it was the help page that was asked for, and it has been printed.
    if said:
        typer.echo(f"{command}: {printable(said)}\nwhat it takes: {command} --help", err=True)
    return int(error.exit_code)


def _defect(error: BaseException) -> int:
    if not structlog.is_configured():
        logs.configure("json")
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in frames[-3:]]  # noqa: PTH119 - a text
    structlog.get_logger().error("command.failed", error=type(error).__name__, where=where)
    return _say(
        f"{type(error).__name__}: this is a defect of Expunge; please report it with the log line above", FAILED
    )
