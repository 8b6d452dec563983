"""Any number of calls of the memory libraries, in any order, against plain lists: on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from adapters.memory import MemoryAdapter
from orchestrator import AdapterContext, Gate, Keyring
from tests.properties.machine_calls import Hands
from tests.properties.memory_machine import MemoryMachine


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[type[MemoryMachine]]:
    is_file = request.param == "sqlite"
    url = f"sqlite:///{quick_path / 'm.db'}" if is_file else str(request.getfixturevalue("postgres_url"))
    clock, gate = Hands(), Gate(Keyring.create())
    context = AdapterContext(clock=clock, gate=gate, log=structlog.get_logger(), state_dir=quick_path)
    with closing(MemoryAdapter(context, url=url)) as adapter:
        yield type("Bound", (MemoryMachine,), {"adapter": adapter, "clock": clock})


@pytest.mark.timeout(600)
def test_any_calls_of_the_libraries_come_to_what_plain_lists_come_to(machine: type[MemoryMachine]) -> None:
    run_state_machine_as_test(
        machine,
        # The profile says how many examples: each run draws others.
        settings=settings(
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
