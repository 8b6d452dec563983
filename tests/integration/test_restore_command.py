"""`expunge restore`: what it takes, what it asks and tells, and when it refuses before anything has changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from adapters.backup import BackupAdapter
from orchestrator import (
    InvalidRequest,
    Selector,
    SelectorKind,
    bootstrap,
)
from orchestrator.initialise import SECTIONS
from orchestrator.testing.erasure import Erasure
from tests.integration.jobs_harness import ANNA, SUBJECT, deployment, scope_of
from tests.integration.restore_harness import Snapshots, cli, recalled, run, snapshots

__all__ = ["deployment", "snapshots"]


@pytest.mark.parametrize("what", ["nothing", "no database", "of another program", "cut off"])
def test_copy_that_is_none_is_refused_and_nothing_has_changed(snapshots: Snapshots, what: str) -> None:
    made, file = snapshots.made, snapshots.folder / "copy"
    if not snapshots.is_file:
        with pytest.raises(InvalidRequest, match="own means"):
            made.memory.restore(file, [], lambda: 2)
        return
    snapshots.take("copy")
    match what:
        case "nothing":
            file.unlink()
        case "no database":
            file.write_text("no database at all, but long enough to be taken for one" * 9)
        case "of another program":
            file.unlink()
            with closing(sqlite3.connect(file)) as other:
                other.execute("CREATE TABLE notes (text TEXT)")
        case "cut off":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(InvalidRequest):
        made.memory.restore(file, [], partial(made.control.ledger.raise_epoch, "memory"))
    assert made.control.ledger.epoch("memory") == 1
    assert recalled(made)


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_copy_of_a_later_epoch_is_refused_and_nothing_has_changed(snapshots: Snapshots) -> None:
    """It knows of a time that the control database has lost: that one is put back first."""
    made, file = snapshots.made, snapshots.folder / "later"
    assert snapshots.is_file
    snapshots.take("later")
    with closing(sqlite3.connect(file)) as copy:
        copy.execute("UPDATE source_epoch SET epoch = 2")
        copy.commit()
    with pytest.raises(InvalidRequest, match="later epoch"):
        made.memory.restore(file, [], partial(made.control.ledger.raise_epoch, "memory"))
    assert made.control.ledger.epoch("memory") == 1
    assert recalled(made), "the source serves as before"


def test_command_tells_what_it_has_done_and_asks_before_it_does(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("copy")
    run(made)
    words = [str(snapshots.folder / "copy")] if snapshots.is_file else ["--in-place"]
    if not snapshots.is_file:
        snapshots.by_hand("copy")
    code, said = cli(made, *words)
    assert (code, "nothing was changed; where nobody can answer, say --yes\n" in said) == (1, True)
    assert made.control.ledger.epoch("memory") == 1
    code, said = cli(made, *words, "--yes", "--json")
    told = json.loads(said[said.index("{\n") :])
    assert (code, told["epoch"], told["erased"]) == (0, 2, 4)
    assert told["tombstones"] > 0
    with made.control.database.begin() as connection:
        noted = connection.exec_driver_sql("SELECT copy_handle, tombstones, erased FROM restore_replays").all()
    assert [tuple(row) for row in noted] == [("copy" if snapshots.is_file else "in place", told["tombstones"], 4)]
    assert made.texts(ANNA) == []
    for wrong in ([], ["copy", "--in-place"]):
        with pytest.raises(InvalidRequest, match="--in-place"):
            cli(made, *wrong)


def test_jobs_that_the_control_database_has_lost_are_named(snapshots: Snapshots) -> None:
    """What they asked for cannot be told from a revocation: whoever files requests has to file these again."""
    made = snapshots.made
    known = run(made, Selector(kind=SelectorKind.KEY, value="colour"))
    lost = Erasure(
        adapter=made.memory, scope=replace(scope_of(ANNA), project=None), selector=SUBJECT, now=made.control.clock.now
    ).order()
    made.memory.revoke([lost])
    snapshots.take("copy")
    assert recalled(made) == []
    words = [str(snapshots.folder / "copy")] if snapshots.is_file else ["--in-place"]
    code, said = cli(made, *words, "--yes", "--json")
    assert (code, json.loads(said[said.index("{\n") : said.rindex("}") + 1])["unknown_jobs"]) == (0, [str(lost.job)])
    assert "File these requests again" in said
    assert known not in said
    assert made.texts(ANNA) == [], "what the lost job hid is erased"


@pytest.mark.case(131)
def test_without_the_keys_of_all_tombstones_nothing_is_restored(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("copy")
    run(made)
    with made.control.database.begin() as connection:
        connection.exec_driver_sql("UPDATE tombstones SET key_id = 'tk-lost' WHERE kind = 'subject'")
    with pytest.raises(InvalidRequest, match="put the keys back first"):
        cli(made, *([str(snapshots.folder / "copy")] if snapshots.is_file else ["--in-place"]), "--yes")
    assert made.control.ledger.epoch("memory") == 1


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)  # on the server one database holds both
def test_without_the_control_database_nothing_is_restored(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("copy")
    made.control.close()
    state = made.control.settings.state_dir
    for file in state.glob("orchestrator.db*"):
        file.unlink()
    with pytest.raises(bootstrap.DatabaseMissing):
        cli(made, str(snapshots.folder / "copy"), "--yes")


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)  # a server is put back by its own means
def test_copy_is_named_by_its_handle_as_well_as_by_its_path(snapshots: Snapshots) -> None:
    made, state = snapshots.made, snapshots.made.control.settings.state_dir
    with (state / "expunge.toml").open("a") as file:
        file.write(SECTIONS["backup"])
    backups = bootstrap.open_adapter(state, "backup")
    assert isinstance(backups, BackupAdapter)
    handle = backups.take().handle
    neighbours = made.berta()
    run(made)
    code, said = cli(made, handle, "--yes")
    assert (code, "records that had been forgotten are erased" in said, made.texts(ANNA)) == (0, True, [])
    assert made.berta() == neighbours
    for unknown in ("no-such-copy", handle[:-1], str(snapshots.folder / handle)):
        with pytest.raises(InvalidRequest):
            cli(made, unknown, "--yes")
    assert made.control.ledger.epoch("memory") == 2
