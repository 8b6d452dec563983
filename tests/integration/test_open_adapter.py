"""An adapter that a program has opened by itself leaves nothing open when it is closed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters.memory import MemoryAdapter
from orchestrator import Scope, open_adapter
from orchestrator.bootstrap import open_control
from orchestrator.initialise import initialise
from orchestrator.store.engine import open_database
from orchestrator.store.migrate import upgrade

OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def test_no_connection_to_the_control_database_outlives_the_adapter(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("EXPUNGE_DATABASE_URL", postgres_url)
    initialise(state)
    control = open_control(state)
    upgrade(control.database)
    control.close()
    eyes = open_database(postgres_url)
    adapter = open_adapter(state, "memory")
    assert isinstance(adapter, MemoryAdapter)
    assert adapter.store.current(Scope(tenant="acme", user="ann")) == []  # it has asked for its epoch
    adapter.close()
    until = time.monotonic() + 5  # a server takes a moment to let go of a closed connection
    while (left := count(eyes)) and time.monotonic() < until:
        time.sleep(0.05)
    eyes.dispose()
    assert left == 0


def count(eyes: sa.Engine) -> int:
    with eyes.connect() as connection:
        return int(connection.exec_driver_sql(OTHERS).scalar_one())
