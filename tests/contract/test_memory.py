"""The memory adapter under the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.stores import memory_in


class TestMemory(AdapterContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with memory_in(tmp_path / "memory") as store:
            yield store
