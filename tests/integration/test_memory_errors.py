"""What the memory store refuses, and what it says when its file cannot be used."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.memory import MemoryAdapter
from orchestrator import DeadlinePassed, InvalidRequest, Permanent, SourceAdapter, StoreLocked, StoreUnreachable
from tests.integration.memory_harness import A, World, counted


def test_nothing_is_done_after_the_deadline(world: World) -> None:
    order = world.order()
    targets = replace(order, targets=world.adapter.find([order])[0].targets)
    world.clock.at = order.deadline
    world.clock.at += timedelta(microseconds=1)
    with pytest.raises(DeadlinePassed):
        world.revoke(order)
    with pytest.raises(DeadlinePassed):
        world.adapter.erase([targets])
    assert counted(world) == (0, 0, 0, 2)
    assert len(world.store.current(A)) == 2


def test_a_locked_store_says_so_within_the_deadline(world: World) -> None:
    blocker = sqlite3.connect(world.file, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    order = replace(world.order(), deadline=world.clock.now() + timedelta(milliseconds=50))
    with pytest.raises(StoreLocked):
        world.revoke(order)
    assert len(world.adapter.find([order])[0].targets) == 1, "readers do not wait for a writer"
    blocker.close()


def test_a_store_that_is_not_there_is_unreachable(world: World, tmp_path: Path) -> None:
    adapter = MemoryAdapter(world.context, url=f"sqlite:///{tmp_path}/missing/m.db")
    for call in (adapter.find, adapter.erase, adapter.verify, adapter.revoke):
        with pytest.raises(StoreUnreachable):
            call([world.order()])
    adapter.close()


def test_a_file_that_is_no_database_is_a_permanent_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database at all" * 100)
    adapter = MemoryAdapter(world.context, url=f"sqlite:///{tmp_path}/broken.db")
    with pytest.raises(Permanent):
        adapter.find([world.order()])
    adapter.close()


def test_options_name_what_is_wrong_and_what_is_allowed(world: World) -> None:
    assert isinstance(world.adapter, SourceAdapter)
    with pytest.raises(InvalidRequest, match=r"option path .* \(allowed: url\)") as caught:
        MemoryAdapter(world.context, path="secret-place")
    assert "secret-place" not in str(caught.value)
    for url in ("sqlite://", "sqlite:///:memory:", "nonsense"):
        with pytest.raises(InvalidRequest, match="SQLite file"):
            MemoryAdapter(world.context, url=url)
