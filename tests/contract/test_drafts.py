"""The drafts adapter under the contract, on each of its databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import MAX_PAGE
from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.drafts import DraftsOnPostgres, drafts_in


class TestDrafts(AdapterContract):
    """Of law 5 a first, a middle and a last page: the memory store is tried with ten."""

    sizes = (MAX_PAGE + 1, 3 * MAX_PAGE + 1)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with drafts_in(tmp_path / "memory") as store:
            yield store


class TestDraftsOnPostgres(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = DraftsOnPostgres(tmp_path / "memory", postgres_url)
        with closing(store.adapter), closing(store):
            yield store
