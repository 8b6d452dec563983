"""What `expunge init` makes, and what it refuses to make anew: keys beside data that was written with the lost ones."""

from __future__ import annotations

import json
import resource
import shutil
import stat
from pathlib import Path

import pytest

from orchestrator.state_directory import make_file, make_private
from tests.integration.cli_harness import Shell

WHO = ("--tenant", "acme", "--user", "ann", "--project", "trips")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a state directory that a fact was stored in."""
    state = tmp_path_factory.mktemp("used") / "state"
    run = Shell(state)
    assert run("init")[0] == 0
    assert run("memory", "put", "passport", "P1234567", "--source", "chat/6", *WHO)[0] == 0
    return state


@pytest.fixture
def run(used: Path, tmp_path: Path) -> Shell:
    shutil.copytree(used, tmp_path / "state")
    (tmp_path / "state").chmod(0o700)
    return Shell(tmp_path / "state")


@pytest.mark.parametrize("key", ["tombstone.json", "reference.key"])
@pytest.mark.parametrize("gone", [(), ("memory.db",), ("orchestrator.db",), ("expunge.toml",)], ids=str)
def test_lost_key_beside_data_is_not_made_anew(run: Shell, key: str, gone: tuple[str, ...]) -> None:
    for name in (f"keys/{key}", *gone):
        (run.state / name).unlink()
    before = sorted(run.state.rglob("*"))
    code, out, error = run("init")
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert (key in error, "restore the key file" in error) == (True, True)
    assert sorted(run.state.rglob("*")) == before, "nothing is written"


def test_error_of_a_lost_keyring_does_not_send_to_init(run: Shell) -> None:
    (run.state / "keys" / "tombstone.json").unlink()
    code, _, error = run("memory", "put", "a", "b", "--source", "s", *WHO)
    assert (code, "restore it from your copy" in error, "expunge init" in error) == (2, True, False)


def test_new_keyring_in_the_place_of_a_lost_one_leaves_the_gate_shut(run: Shell) -> None:
    """Somebody helps himself to a ring from elsewhere: what was forgotten is not learned again."""
    put = ("memory", "put", "passport", "P1234567", "--source", "chat/6", *WHO)
    revoke(run.state)
    assert run(*put)[0] == 3
    other = Shell(run.state.parent / "other")
    assert other("init")[0] == 0
    shutil.copy(other.state / "keys" / "tombstone.json", run.state / "keys" / "tombstone.json")
    code, _, error = run(*put)
    assert (code, "key" in error) == (3, True), error


def revoke(state: Path) -> None:
    """Forget the source in the store, as a worker does for a job."""
    import uuid
    from datetime import UTC, datetime, timedelta

    from adapters.memory import MemoryAdapter
    from orchestrator import EraseOrder, Scope, Selector, SelectorKind, open_adapter

    adapter = open_adapter(state, "memory")
    assert isinstance(adapter, MemoryAdapter)
    order = EraseOrder(
        job=uuid.uuid4(),
        unit=uuid.uuid4(),
        key="k",
        scope=Scope(tenant="acme", user="ann", project="trips"),
        selector=Selector(kind=SelectorKind.SOURCE, value="chat/6"),
        deadline=datetime.now(UTC) + timedelta(seconds=20),
    )
    adapter.revoke([order])
    adapter.close()


def test_lost_control_database_is_not_replaced_unseen(run: Shell) -> None:
    (run.state / "orchestrator.db").unlink()
    for words in (("list",), ("init",), ("up",), ("worker",), ("dispatcher",), ("doctor",)):
        code, out, error = run(*words)
        assert (code, "restore it from a backup" in out + error) == (1, True), words
        assert not (run.state / "orchestrator.db").exists()
    assert run("migrate")[0] == 0
    assert run.json("list") == {"jobs": [], "next": None}


def test_lost_control_database_is_not_replaced_where_the_store_lies_elsewhere(run: Shell, tmp_path: Path) -> None:
    config = run.state / "expunge.toml"
    moved = (run.state / "memory.db").rename(tmp_path / "elsewhere.db")
    config.write_text(config.read_text().replace('"sqlite:///memory.db"', f'"sqlite:///{moved}"'))
    (run.state / "orchestrator.db").unlink()
    code, out, error = run("init")
    assert (code, "restore it from a backup" in out + error) == (1, True)
    assert not (run.state / "orchestrator.db").exists()


def test_everything_is_closed_to_others(run: Shell) -> None:
    open_to_others = [p for p in (run.state, *run.state.rglob("*")) if stat.S_IMODE(p.stat().st_mode) & 0o077]
    assert open_to_others == []
    assert {"orchestrator.db", "memory.db"} <= {path.name for path in run.state.iterdir()}


def test_empty_folder_that_others_may_enter_is_closed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o755)
    assert Shell(state)("init")[0] == 0
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_folder_of_others_is_refused_with_what_to_do(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "letter.txt").write_text("for everybody")
    state.chmod(0o755)
    code, _, error = Shell(state)("init")
    assert (code, f"chmod 700 {state}" in error, len(error.splitlines())) == (2, True, 1)
    assert [path.name for path in state.iterdir()] == ["letter.txt"]


def test_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    code, _, error = Shell(tmp_path / "file")("init")
    assert (code, "is a file" in error, len(error.splitlines())) == (2, True, 1)


def test_keys_that_the_environment_holds_are_not_written(tmp_path: Path) -> None:
    code, _, error = Shell(tmp_path / "state")(
        "init", EXPUNGE_KEYS__TOMBSTONE="env:RING", EXPUNGE_KEYS__REFERENCE="env:REFERENCE", REFERENCE="r" * 64
    )
    assert (code, error) == (0, "")
    assert not (tmp_path / "state" / "keys").exists()


def test_stores_that_are_named_are_enabled_and_the_others_stand_as_comments(tmp_path: Path) -> None:
    run, few = Shell(tmp_path / "all"), Shell(tmp_path / "few")
    every = ("memory", "vector", "cache", "drafts", "backup")
    assert run("init", *(word for name in every for word in ("--store", name)))[0] == 0
    assert few("init")[0] == 0

    def enabled(shell: Shell) -> set[str]:
        told = json.loads(shell("adapters", "--json")[1])["adapters"]
        return {adapter["name"] for adapter in told if adapter["enabled"]}

    assert enabled(run) == set(every)
    assert enabled(few) == {"memory", "cache"}
    assert "# [adapters.vector]" in (few.state / "expunge.toml").read_text()
    code, _, error = few("init", "--store", "vector")
    assert (code, "says which stores are enabled" in error) == (2, True)
    code, _, error = Shell(tmp_path / "none")("init", "--store", "vectors")
    assert (code, "vectors is none of memory, vector" in error) == (2, True), error
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("full_after", [0, 200])
def test_disk_that_is_full_leaves_no_part_of_a_file(tmp_path: Path, full_after: int) -> None:
    """The next run keeps what is there: half a keyring would be the keyring."""
    folder, limits = tmp_path / "state", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (full_after, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            make_file_of(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(folder.iterdir()) == []
    make_file_of(folder)
    with pytest.raises(FileExistsError):
        make_file_of(folder)
    assert (folder / "keyring").read_text() == "k" * 500


def make_file_of(folder: Path) -> None:
    make_private(folder)
    make_file(folder / "keyring", "k" * 500)
