"""`expunge backup`: take copies of the source database, and see where each stands."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from adapters.backup.adapter import BackupAdapter
from adapters.backup.manifest import Copy, Policy
from adapters.backup.options import NAME
from adapters.backup.standing import State
from adapters.memory.shell import EXIT_FAILED, Json, say, using
from adapters.memory.shell import State as StateDir
from orchestrator import InvalidRequest

app = typer.Typer(help="Copies of the source database.", no_args_is_help=True)


@app.command()
def take(
    policy: Annotated[
        Policy, typer.Option(help="rewrite: jobs take things out of it. window: it stays whole until --keep-until.")
    ] = Policy.REWRITE,
    keep_until: Annotated[
        str | None, typer.Option(help="When you will delete it, as 2027-01-31T03:00:00Z: jobs wait to see it gone.")
    ] = None,
    *,
    state: StateDir = None,
    as_json: Json = False,
) -> None:
    """Take a copy of the source database.

    Example: expunge backup take --policy window --keep-until 2027-01-31T03:00:00Z
    """
    with _opened(state) as adapter:
        copy = adapter.take(policy, None if keep_until is None else _instant(keep_until))
    say(_told(copy), [f"took {copy.handle} ({copy.bytes} bytes)"], as_json=as_json)


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
    say({"copies": rows, "unlisted": seen.unlisted}, lines, as_json=as_json)
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
    say({"copy": copy, "jobs": jobs, "tombstones": [asdict(mark) for mark in marks]}, lines, as_json=as_json)


def _opened(state: Path | None) -> AbstractContextManager[BackupAdapter]:
    return using(state, NAME, "the backups", hint="")


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
