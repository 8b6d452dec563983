"""Each line of the doctor: green on a fresh state directory, red when what it looks at is broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator import doctor
from orchestrator.bootstrap import SystemClock, initialise, open_control
from orchestrator.store import engine, migrate
from orchestrator.store.migrate import upgrade
from tests.servers import fake_redis


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "state"
    initialise(folder)
    control = open_control(folder)
    upgrade(control.database)
    control.close()
    with fake_redis() as url:
        monkeypatch.setenv("EXPUNGE_ADAPTERS__CACHE__URL", url)
        yield folder


def red(state: Path) -> dict[str, str]:
    return {check.name: check.detail for check in doctor.examine(state) if not check.ok}


def test_fresh_state_directory_is_green(state: Path) -> None:
    checks = doctor.examine(state)
    assert [check.name for check in checks if not check.ok] == []
    assert [check.name for check in checks] == [
        "configuration",
        "keyring",
        "database",
        "pragmas",
        "broker",
        "adapters",
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
    ring["keys"]["tk-1"]["check"] = "0" * 32
    path.write_text(json.dumps(ring))
    assert {"keyring", "adapters"} == set(red(state))
    path.unlink()
    assert "keys/tombstone.json" in red(state)["keyring"]


def test_missing_schema_is_red(state: Path) -> None:
    (state / "orchestrator.db").unlink()
    assert "expunge migrate" in red(state)["database"]


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


def test_import_name_of_another_distribution_is_red(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "packages_distributions", lambda: {"adapters": ["expunge", "adapters"]})
    assert "adapters" in red(state)["import names"]


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
    assert red(state) == {"database": "OperationalError"}
