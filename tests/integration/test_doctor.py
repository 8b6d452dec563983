"""Each line of the doctor: green on a fresh state directory, red when what it looks at is broken."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from orchestrator import InvalidRequest, doctor
from orchestrator.bootstrap import SystemClock, open_control
from orchestrator.store import engine, migrate
from orchestrator.store.tables import tombstones
from tests.integration.doctor_harness import red, state

__all__ = ["state"]


def test_fresh_state_directory_is_green(state: Path) -> None:
    checks = doctor.examine(state)
    assert [check.name for check in checks if not check.ok] == []
    assert [check.name for check in checks] == [
        "configuration",
        "permissions",
        "keyring",
        "database",
        "pragmas",
        "broker",
        "adapters",
        "source database",
        "import names",
        "clock",
        "free space",
    ]


def test_missing_or_mistyped_configuration_is_red(state: Path, tmp_path: Path) -> None:
    assert "expunge init" in red(tmp_path / "nowhere")["configuration"]
    (state / "expunge.toml").write_text("[engine]\nlaese = '2s'\n")
    assert "did you mean engine.lease" in red(state)["configuration"]
    (state / "expunge.toml").write_text("[engine]\nunit_budget = '1h'\n")
    assert "must be shorter than" in red(state)["configuration"]


def test_crash_point_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_CRASH_AT", "after_claim")
    assert set(red(state)) == {"configuration"}


def test_wrong_key_is_red(state: Path) -> None:
    path = state / "keys" / "tombstone.json"
    ring = json.loads(path.read_text())
    ring["keys"][ring["current"]]["check"] = "0" * 32
    path.write_text(json.dumps(ring))
    assert {"keyring", "adapters"} == set(red(state))
    path.unlink()
    assert "keys/tombstone.json" in red(state)["keyring"]


def test_tombstones_under_a_key_that_the_ring_lacks_are_red(state: Path) -> None:
    control = open_control(state)
    row = {"tenant": "acme", "key_id": "tk-1", "mac": "m" * 64, "kind": "source", "job_id": "j"}
    with control.database.begin() as connection:
        connection.execute(
            sa.insert(tombstones).values({**row, "reason_code": "operator", "cut_off": 1, "created_at_us": 1})
        )
    control.close()
    found = red(state)
    assert set(found) == {"keyring"}
    assert "under tk-1, which the keyring lacks: restore the keyring" in found["keyring"]


def test_lost_key_is_told_without_the_advice_to_make_a_new_one(state: Path) -> None:
    (state / "keys" / "tombstone.json").unlink()
    told = red(state)["keyring"]
    assert ("restore it from your copy" in told, "expunge init" in told) == (True, False)


def test_missing_database_is_red_and_not_made_anew(state: Path) -> None:
    (state / "orchestrator.db").unlink()
    assert "restore it from a backup" in red(state)["database"]
    assert not (state / "orchestrator.db").exists()


def test_missing_schema_is_red(state: Path) -> None:
    (state / "orchestrator.db").write_bytes(b"")
    assert "expunge migrate" in red(state)["database"]


def test_garbage_instead_of_a_database_is_red_with_what_to_do(state: Path) -> None:
    (state / "orchestrator.db").write_bytes(b"garbage " * 1000)
    assert "its file is no database: restore it from a backup" in red(state)["database"]


@pytest.mark.parametrize("name", [".", "keys", "keys/reference.key", "orchestrator.db"])
def test_what_others_may_read_is_red(state: Path, name: str) -> None:
    path = state / name
    path.chmod(path.stat().st_mode | 0o044)
    found = red(state)
    assert set(found) == {"permissions"}
    assert (str(path) in found["permissions"], "chmod go-rwx" in found["permissions"]) == (True, True)


def test_pragma_that_is_not_as_required_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lax(_engine: object) -> Mapping[str, object]:
        return {name: expected for name, (_, expected) in engine.PRAGMAS.items()} | {"synchronous": 1}

    monkeypatch.setattr(engine, "pragmas", lax)
    assert red(state) == {"pragmas": "not as required: synchronous"}


def test_pragma_that_sqlite_refuses_stops_every_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine.PRAGMAS, "secure_delete", ("ON", 2))
    database = engine.open_database(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(engine.PragmaRefused), database.connect():
        pass
    database.dispose()


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//"])
def test_broker_that_does_not_answer_is_red(state: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("EXPUNGE_BROKER_URL", url)
    assert set(red(state)) == {"broker"}


def test_broker_folder_that_is_no_folder_is_red(state: Path) -> None:
    (state / "broker").write_text("in the way")
    assert set(red(state)) == {"broker"}


def test_store_that_does_not_answer_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_ADAPTERS__CACHE__URL", "redis://127.0.0.1:1/0")
    assert "store_unreachable" in red(state)["adapters"]


def test_unknown_adapter_is_red(state: Path) -> None:
    with (state / "expunge.toml").open("a") as file:
        file.write("[adapters.memry]\n")
    assert "did you mean 'memory'" in red(state)["configuration"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('require = "wiped"', "adapters.memory.require: not supported, set it to: logical or physical"),
        ("require = 1", "adapters.memory.require: not supported, set it to: logical or physical"),
        ('required = "no"', "adapters.memory.required: not supported, set it to: true or false"),
        ("required = 1", "adapters.memory.required: not supported, set it to: true or false"),
    ],
)
def test_claim_that_no_store_can_keep_is_refused_at_start(state: Path, line: str, told: str) -> None:
    (state / "expunge.toml").write_text(f"[adapters.memory]\n{line}\n")
    assert red(state) == {"configuration": told}
    with pytest.raises(InvalidRequest):
        open_control(state)


def test_environment_says_in_words_whether_a_store_is_required(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_ADAPTERS__CACHE__REQUIRED", "false")
    monkeypatch.setenv("EXPUNGE_ADAPTERS__MEMORY__REQUIRED", "true")
    control = open_control(state)
    control.close()
    assert {store.name: store.required for store in control.ledger.rules.stores} == {"memory": True, "cache": False}


def test_store_that_is_silent_is_left_after_the_call_time_out(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_ENGINE__CALL_TIMEOUT", "200ms")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("EXPUNGE_ADAPTERS__CACHE__URL", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        began = time.monotonic()
        assert "store_unreachable" in red(state)["adapters"]
        assert time.monotonic() - began < 4


def test_url_that_names_no_database_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_DATABASE_URL", "control")
    assert "postgresql+psycopg://" in red(state)["configuration"]


@pytest.mark.parametrize("owners", [["expunge", "adapters"], ["adapters"]])
def test_import_name_of_another_distribution_is_red(
    state: Path, monkeypatch: pytest.MonkeyPatch, owners: list[str]
) -> None:
    monkeypatch.setattr(doctor, "packages_distributions", lambda: {"adapters": owners})
    assert "also belongs to adapters" in red(state)["import names"]


@pytest.mark.parametrize("told", [None, "{}", '{"url": "file:///somewhere/else", "dir_info": {"editable": true}}'])
def test_import_name_that_nobody_owns_is_red(state: Path, monkeypatch: pytest.MonkeyPatch, told: str | None) -> None:
    installed = SimpleNamespace(read_text={"direct_url.json": told}.get)
    monkeypatch.setattr(doctor, "packages_distributions", dict)
    monkeypatch.setattr(doctor, "distribution", {"expunge": installed}.__getitem__)
    assert "nobody owns the import name orchestrator" in red(state)["import names"]


def test_missing_distribution_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "packages_distributions", dict)
    monkeypatch.setattr(doctor, "distribution", missing)
    assert "install Expunge" in red(state)["import names"]


def test_clock_that_is_wrong_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _self: datetime.now(UTC) + timedelta(minutes=5))
    assert set(red(state)) == {"clock"}


def test_full_disk_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(state)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=10 * 2**20))
    assert set(red(state)) == {"free space"}


def test_locked_database_is_red_without_a_stack_trace(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_engine: object) -> bool:
        statement = "SELECT secret"
        raise sa.exc.OperationalError(statement, {}, Exception(statement))

    monkeypatch.setattr(migrate, "pending", refuse)
    found = red(state)
    assert set(found) == {"database"}
    assert ("cannot be reached (Exception)" in found["database"], "SELECT" in found["database"]) == (True, False)


@pytest.mark.parametrize("url", ["nosuch://x", "", "redis://host:port/0"])
def test_broker_that_nobody_knows_is_red(state: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("EXPUNGE_BROKER_URL", url)
    assert red(state)["configuration"].startswith("broker_url: ")


@pytest.mark.parametrize("key", ["lease", "call_timeout", "dispatch_interval"])
def test_budget_of_no_length_is_red(state: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(f"EXPUNGE_ENGINE__{key.upper()}", "0s")
    assert red(state)["configuration"].startswith(f"engine.{key}: ")


def test_short_reference_key_is_red(state: Path) -> None:
    (state / "keys" / "reference.key").write_text("short\n")
    assert "shorter than 32 bytes" in red(state)["configuration"]
