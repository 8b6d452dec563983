"""`expunge restore`: a source goes back to an earlier state, and nobody who was forgotten comes back with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast
from uuid import UUID

import typer

from orchestrator.bootstrap import Control, context, open_control, open_engine
from orchestrator.counted import counted
from orchestrator.domain.abilities import RestorableSource
from orchestrator.domain.contract import Tombstone
from orchestrator.domain.errors import InvalidRequest
from orchestrator.registry import naming
from orchestrator.settings import state_dir
from workers.main import StateDir

if TYPE_CHECKING:
    from adapters.backup import BackupAdapter

BACKUPS: Final = "backup"


class Counted:
    """The tombstones of the control database, counted while they are read."""

    def __init__(self, control: Control) -> None:
        self._control, self.count = control, 0

    def __iter__(self) -> Iterator[tuple[str, UUID, Tombstone]]:
        for told in self._control.ledger.tombstones():
            self.count += 1
            yield told


def restore(
    copy: Annotated[
        str | None, typer.Argument(help="A copy of the source's SQLite file, or a handle of `expunge backup list`.")
    ] = None,
    in_place: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--in-place", help="The database was put back by its own means already.")
    ] = False,
    adapter: Annotated[str, typer.Option(help="Which source.")] = "memory",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - as above
    directory: StateDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,  # noqa: FBT002
) -> None:
    """Put a source back to a copy of it. What was forgotten since is erased before anybody can read.

    Until this has come to its end, the source gives nothing out; run it again if it was stopped.
    Other stores stay as they are.

    Example: expunge restore backups/2027-01-31.db --yes

    Example: expunge restore --in-place
    """
    if (copy is None) is not in_place:
        message = "name a copy, or say --in-place where the database was put back by its own means"
        raise InvalidRequest(message, field="copy")
    control = open_control(state_dir(directory), create=False)
    try:
        _check_keys(control)
        file = None if copy is None else _file(control, copy)
        with closing(open_engine(control, [_known(control, adapter)]).adapters[adapter]) as source, naming(adapter):
            if not isinstance(source, RestorableSource):
                message = f"adapter {adapter!r} is no source that can be put back"
                raise InvalidRequest(message, field="adapter")
            if control.ledger.holds(tenant=None, released=False, after=None, limit=1):
                typer.echo("legal holds stand: what they cover comes back only as far as the copy has it", err=True)
            if not yes and not _agreed():
                typer.echo("nothing was changed; where nobody can answer, say --yes", err=True)
                raise typer.Exit(1)
            began, marks = control.clock.now(), Counted(control)
            ledger = control.ledger
            named, kept = ledger.targets_of(adapter), ledger.kept_by(adapter)
            replayed = source.restore(file, marks, partial(ledger.raise_epoch, adapter), named, kept)
        name = "in place" if file is None else file.name
        control.ledger.note_restore(name, tombstones=marks.count, erased=replayed.erased, began=began)
        told = {"epoch": control.ledger.epoch(adapter), "tombstones": marks.count, "erased": replayed.erased}
        unknown = sorted(map(str, control.ledger.unknown_jobs(replayed.jobs)))
    finally:
        control.close()
    if as_json:
        typer.echo(json.dumps({**told, "unknown_jobs": unknown}, indent=2))
    else:
        typer.echo(
            f"restored: {counted(marks.count, 'tombstone was', 'tombstones were')} merged, "
            f"{counted(replayed.erased, 'record that had been forgotten is', 'records that had been forgotten are')} "
            "erased"
        )
    if unknown:
        message = (
            f"{counted(len(unknown), 'job is', 'jobs are')} not in the control database, and this source has revoked "
            "for each: what was hidden is erased here, other stores may hold copies. File these requests again: "
        )
        typer.echo(message + ", ".join(unknown), err=True)


def _agreed() -> bool:
    try:
        return typer.confirm("What was stored since that copy was taken will be gone. Go on?", err=True)
    except typer.Abort:
        if sys.stdin.isatty():  # Ctrl-C, as anywhere
            raise
        return False


def _file(control: Control, named: str) -> Path:
    """Give the file of a copy: the one at that path, else the one that the backups have under that handle."""
    path = Path(named)
    if path.exists() or "/" in named or BACKUPS not in control.settings.adapters:
        return path
    with closing(cast("BackupAdapter", open_engine(control, [BACKUPS]).adapters[BACKUPS])) as backups, naming(BACKUPS):
        return backups.path_of(named)


def _known(control: Control, adapter: str) -> str:
    if adapter not in control.settings.adapters:
        message = f"adapter {adapter!r} is not enabled (enabled: {', '.join(control.settings.adapters)})"
        raise InvalidRequest(message, field="adapter")
    return adapter


def _check_keys(control: Control) -> None:
    """Refuse where a tombstone cannot be compared with anything: nobody could tell what has been forgotten."""
    missing = set(control.ledger.tombstone_keys()) - set(context(control).gate.keyring.key_ids)
    if missing:
        lost = counted(len(missing), "key of tombstones is", "keys of tombstones are")
        message = f"{lost} not in the keyring: put the keys back first"
        raise InvalidRequest(message, field="keys")
