"""The cache adapter under the contract, on the fake server and on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import MAX_PAGE
from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.stores import cache_in


class TestCacheOnFake(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path, fake_url: str) -> Iterator[StoreUnderTest]:
        with cache_in(tmp_path / "cache", fake_url) as store:
            yield store


class TestCacheOnRedis(AdapterContract):
    """Of law 5 a first, a middle and a last page: the memory store is tried with ten."""

    sizes = (MAX_PAGE + 1, 3 * MAX_PAGE + 1)

    @pytest.fixture
    def store(self, tmp_path: Path, real_url: str) -> Iterator[StoreUnderTest]:
        with cache_in(tmp_path / "cache", real_url) as store:
            yield store
