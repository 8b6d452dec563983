"""The files of a restore: what lies beside the database while one runs, and no more when it has ended or died."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from adapters.memory.replay import RANGE
from adapters.memory.restore import from_copy
from orchestrator import (
    AdapterContext,
    EraseOrder,
    Gate,
    InvalidRequest,
    Keyring,
    Permanent,
    Scope,
    Selector,
    SelectorKind,
    StoreLocked,
    Tombstone,
)
from tests.fakes import FakeClock

ROOT = Path(__file__).parents[2]
SCOPE = Scope(tenant="acme", user="ann", project="trips")
SECRET = "The passport number is P1234567."
DIES = """
import os, pathlib, sys
from adapters.memory.restore import from_copy
from orchestrator import Gate, Keyring
live, copy = map(pathlib.Path, sys.argv[1:])
from_copy(live, copy, Gate(Keyring.create()), [], lambda: os._exit(9), [], [], known=None)
"""


@dataclass
class Shelf:
    """A source that has forgotten a passport, and a copy from before; it stays closed while it is put back."""

    context: AdapterContext
    live: Path
    copy: Path
    marks: Sequence[tuple[str, UUID, Tombstone]] = ()

    def opened(self) -> closing[MemoryAdapter]:
        return closing(MemoryAdapter(self.context, url="sqlite:///memory.db"))

    def restore(self, epoch: int = 2) -> None:
        from_copy(self.live, self.copy, self.context.gate, self.marks, lambda: epoch, [], [], known=None)

    def facts(self) -> dict[str, str]:
        with self.opened() as memory:
            return {fact.key: fact.value for fact in memory.store.current(SCOPE)}

    def holders(self) -> list[str]:
        """Name the files beside the live one, itself included, that hold the text."""
        files = [path for path in self.live.parent.rglob("*") if path.is_file()]
        return [str(path.relative_to(self.live.parent)) for path in files if SECRET.encode() in path.read_bytes()]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    clock, state = FakeClock(), tmp_path / "what state? 100%20"  # characters that mean something in a URL
    state.mkdir()
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=state)
    made = Shelf(context, state / "memory.db", tmp_path / "copy.db")
    with made.opened() as memory:
        memory.store.register_source(SCOPE, "turn-1")
        memory.store.put(SCOPE, "passport", SECRET, "turn-1")
        memory.store.put(SCOPE, "seat", "aisle", "turn-1")
        with closing(sqlite3.connect(made.live)) as source, closing(sqlite3.connect(made.copy)) as target:
            source.backup(target)
        selector = Selector(kind=SelectorKind.KEY, value="passport")
        deadline = clock.now() + timedelta(seconds=60)
        order = EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=SCOPE, selector=selector, deadline=deadline)
        (revoked,) = memory.revoke([order])
        memory.erase([replace(order, targets=revoked.targets)])
    made.marks = [(SCOPE.tenant, order.job, mark) for mark in revoked.tombstones]
    return made


def test_copy_of_a_restore_that_was_killed_goes_with_the_next_one(shelf: Shelf) -> None:
    """Who was forgotten since is in it: what is left of it is a copy that no job knows."""
    assert shelf.holders() == []
    died = subprocess.run([sys.executable, "-c", DIES, str(shelf.live), str(shelf.copy)], cwd=ROOT, check=False)
    assert died.returncode == 9
    assert shelf.holders() == ["memory.db.restoring/restored.db"]
    assert shelf.facts() == {"seat": "aisle"}, "nothing was put in its place"
    shelf.restore()
    assert shelf.holders() == []
    assert [path.name for path in shelf.live.parent.iterdir() if path.is_dir()] == []
    assert shelf.facts() == {"seat": "aisle"}


def test_second_restore_waits_for_the_one_that_is_under_way(shelf: Shelf) -> None:
    def meanwhile() -> int:
        with pytest.raises(StoreLocked):
            shelf.restore(3)
        return 2

    from_copy(shelf.live, shelf.copy, shelf.context.gate, shelf.marks, meanwhile, [], [], known=None)
    assert shelf.facts() == {"seat": "aisle"}
    shelf.restore(3)
    assert shelf.facts() == {"seat": "aisle"}


@pytest.mark.parametrize("what", ["no database", "of another version", "of other chains"])
def test_copy_that_is_refused_leaves_nothing_beside_the_database(shelf: Shelf, what: str) -> None:
    if what == "no database":
        shelf.copy.write_text("no database at all, but long enough to be taken for one" * 9)
    with closing(sqlite3.connect(shelf.copy)) as copy:
        if what == "of another version":
            copy.execute("PRAGMA user_version = 99")
        if what == "of other chains":
            copy.execute("CREATE TABLE chain_schema (version INTEGER NOT NULL)")
            copy.commit()
    begun = list[int]()

    def begin() -> int:
        begun.append(2)
        return 2

    with pytest.raises(InvalidRequest):
        from_copy(shelf.live, shelf.copy, shelf.context.gate, shelf.marks, begin, [], [], known=None)
    assert begun == [], "no epoch begins for a copy that cannot be put back"
    assert [path.name for path in shelf.live.parent.iterdir() if path.is_dir()] == []
    assert shelf.facts() == {"seat": "aisle"}


def test_damaged_file_is_named_as_the_reason_and_a_copy_takes_its_place_when_it_is_away(shelf: Shelf) -> None:
    shelf.live.write_bytes(b"no database at all, but long enough to be taken for one" * 99)
    with pytest.raises(Permanent, match="move it away"):
        shelf.restore()
    shelf.live.rename(shelf.live.with_suffix(".damaged"))
    shelf.restore(3)
    assert shelf.facts() == {"seat": "aisle"}
    assert shelf.holders() == []


@pytest.mark.parametrize("by", ["a copy", "its own means"])
def test_memory_ids_begin_above_all_that_were_given_though_the_copy_had_no_memories(shelf: Shelf, by: str) -> None:
    with shelf.opened() as memory:
        memory.restore(shelf.copy if by == "a copy" else None, shelf.marks, lambda: 2)
        first = memory.chains.remember(TaskScope("ann", "trips", "acme"), "task", "Sits at the aisle.", "turn-1")
    assert first > 2 * RANGE
