"""The cache adapter under the contract, on the fake server and on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.stores import cache_in


class TestCacheOnFake(AdapterContract):
    sizes = (1001,)

    @pytest.fixture
    def store(self, tmp_path: Path, fake_url: str) -> Iterator[StoreUnderTest]:
        with cache_in(tmp_path / "cache", fake_url) as store:
            yield store


class TestCacheOnRedis(AdapterContract):
    @pytest.fixture
    def store(self, tmp_path: Path, real_url: str) -> Iterator[StoreUnderTest]:
        with cache_in(tmp_path / "cache", real_url) as store:
            yield store
