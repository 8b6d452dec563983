"""The notes of JSON lines under the contract: the shortest adapter that passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.stores import notes_in


class TestNotes(AdapterContract):
    sizes = (1001,)  # every call reads the whole file

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with notes_in(tmp_path / "notes") as store:
            yield store
