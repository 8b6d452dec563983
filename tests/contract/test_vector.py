"""The vector adapter under the contract, on each of its databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator import MAX_PAGE
from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.vectors import SlippingThrough, VectorOnPostgres, VectorUnderTest


class TestVector(AdapterContract):
    """Of law 5 a first, a middle and a last page: the memory store is tried with ten."""

    sizes = (MAX_PAGE + 1, 3 * MAX_PAGE + 1)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        store = VectorUnderTest(tmp_path / "vector")
        with closing(store.adapter):
            yield store


class TestVectorOnPostgres(AdapterContract):
    sizes = (MAX_PAGE + 1,)  # each point is entered into the graph

    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = VectorOnPostgres(tmp_path / "vector", postgres_url)
        with closing(store.adapter), closing(store):
            yield store


def test_what_has_slipped_by_the_guard_is_found_by_a_look(tmp_path: Path) -> None:
    store = SlippingThrough(tmp_path / "vector")
    with closing(store.adapter):
        TestVector().test_law_08_a_late_writer_is_refused_or_found(store)


def test_what_was_made_from_a_point_behind_the_guard_is_found_by_a_look(tmp_path: Path) -> None:
    store = SlippingThrough(tmp_path / "vector")
    with closing(store.adapter):
        TestVector().test_law_10_what_is_made_from_a_copy_later_is_seen(store)
