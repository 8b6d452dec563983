"""One fake and one real Redis for all of the contract: each store empties its own first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import fake_redis, real_redis


@pytest.fixture(scope="session")
def fake_url() -> Iterator[str]:
    with fake_redis() as url:
        yield url


@pytest.fixture(scope="session")
def real_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url
