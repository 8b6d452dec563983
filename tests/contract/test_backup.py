"""The backup adapter under the contract, on a real folder of copies of a real source database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.backups import backups_in


class TestBackup(AdapterContract):
    """Of law 5 a dozen copies, each of which is rewritten: what a page holds is shown with smaller pages."""

    sizes = (12,)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with backups_in(tmp_path / "backup") as store:
            yield store
