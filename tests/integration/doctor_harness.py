"""A state directory on which every line of the doctor is green, and what the doctor says is red."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import doctor
from orchestrator.bootstrap import open_control
from orchestrator.initialise import initialise
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
