"""`expunge backup`: take copies of the source database, and see where each stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from adapters.backup.adapter import BackupAdapter
from adapters.backup.manifest import Copy, Policy
from adapters.backup.options import NAME
from adapters.backup.standing import State
from orchestrator import ErasureError, InvalidRequest

app = typer.Typer(help="Copies of the source database.", no_args_is_help=True)

EXIT_FAILED: Final = 1
EXIT_INVALID: Final = 2

StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@app.command()
def take(
    policy: Annotated[
        Policy, typer.Option(help="rewrite: jobs take things out of it. window: it stays whole until --keep-until.")
    ] = Policy.REWRITE,
    keep_until: Annotated[str | None, typer.Option(help="Until when it is kept: 2027-01-31T03:00:00Z.")] = None,
    *,
    state: StateDir = None,
    as_json: Json = False,
) -> None:
    """Take a copy of the source database.

    Example: expunge backup take --policy window --keep-until 2027-01-31T03:00:00Z
    """
    with _opened(state) as adapter:
        copy = adapter.take(policy, None if keep_until is None else _instant(keep_until))
    _say(_told(copy), [f"took {copy.handle} ({copy.bytes} bytes)"], as_json=as_json)


@app.command(name="list")
def list_(*, state: StateDir = None, as_json: Json = False) -> None:
    """Show the copies, until when each is kept, and whether its file is there; exit 1 where one is not as it should.

    Example: expunge backup list --json
    """
    with _opened(state) as adapter:
        seen = adapter.copies()
    rows = [{**_told(copy), "state": found.value} for copy, found in seen.copies]
    lines = [_line(copy, found) for copy, found in seen.copies] or ["no copies"]
    if seen.unlisted:
        files = "1 file that" if seen.unlisted == 1 else f"{seen.unlisted} files that"
        lines.append(f"{files} the manifest does not name: jobs wait for each that holds something")
    _say({"copies": rows, "unlisted": seen.unlisted}, lines, as_json=as_json)
    if seen.unlisted or any(found in {State.MISSING, State.OVERDUE} for _, found in seen.copies):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def unseen(
    copy: Annotated[str, typer.Argument(help="Its handle, as `expunge backup list` gives it.")],
    *,
    state: StateDir = None,
    as_json: Json = False,
) -> None:
    """Give the erasures that a copy has not seen: tombstones, which are keyed hashes, set since it was taken.

    What they match is to be left out by whoever puts the copy back by other means than `expunge restore`.

    Example: expunge backup unseen COPY --json
    """
    with _opened(state) as adapter:
        marks = adapter.unseen(copy)
    jobs = len({mark.job for mark in marks})
    were = "1 tombstone was" if len(marks) == 1 else f"{len(marks)} tombstones were"
    lines = [f"{were} set since, of {jobs} {'job' if jobs == 1 else 'jobs'}"]
    lines += [f"{m.tenant} {m.job} {m.kind} {m.key_id} {m.mac} up to {m.cut_off}" for m in marks]
    _say({"copy": copy, "jobs": jobs, "tombstones": [asdict(mark) for mark in marks]}, lines, as_json=as_json)


@contextmanager
def _opened(state: Path | None) -> Iterator[BackupAdapter]:
    """Open the installed adapter; refusals and wrong requests become exit codes."""
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        adapter = cast("BackupAdapter", open_adapter(state, NAME))
        try:
            yield adapter
        finally:
            adapter.close()
    except InvalidRequest as error:
        typer.echo(f"expunge: {error}", err=True)
        raise typer.Exit(EXIT_INVALID) from None
    except ErasureError as error:
        typer.echo(f"expunge: the backups cannot be used: {error} ({error.code})", err=True)
        raise typer.Exit(EXIT_FAILED) from None


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        message = "--keep-until must be a time of the form 2027-01-31T03:00:00Z"
        raise InvalidRequest(message, field="keep_until") from None


def _told(copy: Copy) -> dict[str, object]:
    return copy.model_dump(mode="json", exclude={"pending"})


def _line(copy: Copy, found: State) -> str:
    until = "" if copy.keep_until is None else f" until {copy.keep_until.isoformat()}"
    return f"{copy.handle}: {found.value}, {copy.policy.value}{until}, {copy.bytes} bytes"


def _say(answer: dict[str, object], lines: list[str], *, as_json: bool) -> None:
    for line in [json.dumps(answer, ensure_ascii=False)] if as_json else lines:
        typer.echo(line)
