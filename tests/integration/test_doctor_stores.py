"""The doctor on stores: those that mean one database, those whose files lie elsewhere, and those that are coming up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from adapters.backup.options import Options as BackupOptions
from adapters.drafts.adapter import Options as DraftsOptions
from adapters.memory.adapter import Options as MemoryOptions
from orchestrator import doctor, doctor_stores, embedded, settings
from orchestrator.doctor_stores import COPIES, SOURCE_FILE, SOURCE_URL
from orchestrator.initialise import SECTIONS
from orchestrator.state_directory import held
from tests.integration.doctor_harness import red, state

__all__ = ["state"]

SERVER = "postgresql+psycopg://someone:secret-word@db.example:5432/facts"


def told(state: Path, name: str) -> str:
    return next(check.detail for check in doctor.examine(state) if check.name == name)


def enable(state: Path, *names: str) -> None:
    with (state / "expunge.toml").open("a") as file:
        file.writelines(SECTIONS[name] for name in names)


def test_drafts_and_copies_of_the_source_are_of_one_database(state: Path) -> None:
    enable(state, "drafts", "backup")
    assert red(state) == {}
    assert told(state, "source database") == "[adapters.drafts] url, [adapters.backup] source: one database"


def test_what_the_configuration_leaves_out_is_compared_as_the_adapters_take_it(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert MemoryOptions().url.get_secret_value() == DraftsOptions().url.get_secret_value() == SOURCE_URL
    assert (str(BackupOptions().source), str(BackupOptions().manifest)) == (SOURCE_FILE, COPIES)
    with (state / "expunge.toml").open("a") as file:
        file.write("[adapters.drafts]\n[adapters.backup]\n")
    assert red(state) == {}
    assert list(elsewhere.iterdir()) == [], "what is named without a folder lies in the state directory"
    assert (state / "memory.db").exists()


@pytest.mark.parametrize(("section", "option"), [("drafts", "url"), ("backup", "source")])
def test_store_that_means_another_database_is_red(state: Path, section: str, option: str) -> None:
    enable(state, "drafts", "backup")
    path = state / "expunge.toml"
    head, mark, tail = path.read_text().rpartition(f"[adapters.{section}]  ")
    path.write_text(head + mark + tail.replace("memory.db", "other.db", 1))
    # Backups ask their source how far a job reaches: where it is not there, they say so as well.
    also = {"adapters"} if section == "backup" else set[str]()
    assert set(found := red(state)) == {"source database"} | also
    assert found["source database"].startswith(f"[adapters.{section}] {option} and [adapters.memory] url name two")


@pytest.mark.parametrize("name", ["facts", "drafts"])
def test_databases_of_a_server_are_told_apart_and_no_password_is_repeated(
    state: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    enable(state, "drafts")
    monkeypatch.setenv("EXPUNGE_ADAPTERS__MEMORY__URL", SERVER)
    # The tables of drafts may be another user's.
    other = SERVER.replace("someone:secret-word", "drafter:other-word").replace("/facts", f"/{name}")
    monkeypatch.setenv("EXPUNGE_ADAPTERS__DRAFTS__URL", other)
    checks = {check.name: check for check in doctor.examine(state)}
    assert checks["source database"].ok is (name == "facts")
    said = " ".join(check.detail for check in checks.values())
    assert ("secret-word" in said, "other-word" in said, "db.example" in said) == (False, False, False)


def test_copies_of_a_source_that_is_no_file_are_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enable(state, "backup")
    monkeypatch.setenv("EXPUNGE_ADAPTERS__MEMORY__URL", SERVER)
    assert "[adapters.backup] source" in red(state)["source database"]


@pytest.mark.parametrize("end", ["", "-wal"])
def test_database_elsewhere_that_others_may_read_is_red(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    file = tmp_path / "elsewhere" / "facts.db"
    file.parent.mkdir()
    monkeypatch.setenv("EXPUNGE_ADAPTERS__MEMORY__URL", f"sqlite:///{file}")
    beside = file.with_name(file.name + end)
    beside.touch(0o600)
    assert doctor_stores.open_files(settings.read(state)) == []
    beside.chmod(0o640)
    assert doctor_stores.open_files(settings.read(state)) == [beside]
    assert f"others may read {beside}: run chmod go-rwx" in red(state)["permissions"]


def test_copies_elsewhere_that_others_may_read_are_red(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable(state, "backup")
    folder = tmp_path / "copies"
    folder.mkdir(0o700)
    monkeypatch.setenv("EXPUNGE_ADAPTERS__BACKUP__MANIFEST", str(folder / "manifest.json"))
    (folder / "2026.db").touch()
    (folder / "2026.db").chmod(0o644)  # whatever the umask
    assert doctor_stores.open_files(settings.read(state)) == [folder / "2026.db"]
    folder.chmod(0o755)
    assert doctor_stores.open_files(settings.read(state)) == [folder, folder / "2026.db"]


def test_embedded_cache_is_starting_for_the_first_seconds_and_red_afterwards(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXPUNGE_ADAPTERS__CACHE__URL")
    monkeypatch.setattr(embedded, "STARTING", 600.0)  # however slow this machine is
    (state / "memory.db").touch(0o600)
    assert "is not running" in red(state)["adapters"], "nobody has started it"
    lock = state / embedded.LOCK
    with held(lock, "held"):
        assert red(state) == {}
        assert "starting: cache" in told(state, "adapters")
        long_ago = time.time() - embedded.STARTING - 1
        os.utime(lock, (long_ago, long_ago))
        assert "is not running" in red(state)["adapters"], "its time to start is over"


def test_service_of_an_up_that_has_died_is_not_starting(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPUNGE_ADAPTERS__CACHE__URL")
    lock = state / embedded.LOCK
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    lock.write_text(str(child))
    assert "is not running" in red(state)["adapters"]


def test_store_that_nobody_has_to_start_is_never_starting(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_ADAPTERS__CACHE__URL", "redis://127.0.0.1:1/0")
    with held(state / embedded.LOCK, "held"):
        assert "store_unreachable" in red(state)["adapters"]
