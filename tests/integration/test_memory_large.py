"""A subject with very many facts: every answer is a page, and no call holds more than a part in memory."""

from __future__ import annotations

import gc
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory import revoke as revoking
from adapters.memory.engine import writing
from adapters.memory.tombstones import MAX_TOMBSTONES
from orchestrator import (
    MAX_PAGE,
    AdapterContext,
    EraseOrder,
    Gate,
    Holding,
    InvalidRequest,
    Keyring,
    Revocation,
    Scope,
    Selector,
    SelectorKind,
    Target,
    TombstoneKind,
)

FACTS, SOURCES = 20_000, 6_000
BOUND = 8 * 2**20
"""Bytes that one call may hold at a time: the facts alone are several times as much."""
ANNA = Scope(tenant="acme", user="anna")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
GATE = Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32}))
BUILD = f"""
INSERT INTO tenant_positions VALUES ('acme', {SOURCES});
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {SOURCES})
  INSERT INTO accepted_sources SELECT 'acme', 'turn-' || i, 'anna', 'p-' || (i % 3), 'user_message', i + 1, 0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {FACTS})
  INSERT INTO facts SELECT 'acme', 'anna', 'p-' || (i % 3), 'key-' || i, 1, lower(hex(randomblob(16))),
    'Line ' || i || ' of many ' || hex(zeroblob(200)), 'turn-' || (i % {SOURCES}), 1, 9e999, 1, 'live' FROM n;
INSERT INTO facts SELECT tenant, 'berta', project, key, 1, 'of-berta', value, source, 1, 9e999, 1, 'live'
  FROM facts WHERE key = 'key-1';
"""  # noqa: S608 - numbers of ours
A = TypeVar("A", Revocation, Holding)


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[MemoryAdapter]:
    context = AdapterContext(clock=Now(), gate=GATE, log=structlog.get_logger(), state_dir=tmp_path)
    with closing(MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")) as made:
        made.store.revision(ANNA)  # makes the tables
        with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as connection:
            connection.executescript(f"BEGIN; {BUILD} COMMIT;")
        yield made


def order(selector: Selector = SUBJECT, **parts: Any) -> EraseOrder:  # noqa: ANN401 - as the fields are
    deadline = datetime.now(UTC) + timedelta(seconds=100)
    made = EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=ANNA, selector=selector, deadline=deadline)
    return replace(made, **parts)


def pages(call: Callable[[list[EraseOrder]], Any], asked: EraseOrder, kind: type[A]) -> Iterator[A]:
    while True:
        (answer,) = call([asked])
        assert isinstance(answer, kind)
        yield answer
        if answer.cursor is None:
            return
        asked = replace(asked, cursor=answer.cursor)


def most(call: Callable[[], object]) -> int:
    """Give the most memory that a call has held."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("selector", "marks"),
    [
        (SUBJECT, {TombstoneKind.SUBJECT: 1, TombstoneKind.SOURCE: SOURCES}),
        (Selector(kind=SelectorKind.SOURCE, value="turn-1"), {TombstoneKind.SOURCE: 1, TombstoneKind.TEXT: FACTS}),
    ],
    ids=["subject", "source"],
)
def test_many_facts_go_page_by_page_within_a_bound(
    adapter: MemoryAdapter, selector: Selector, marks: dict[TombstoneKind, int], tmp_path: Path
) -> None:
    if selector is not SUBJECT:
        with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
            connection.execute("UPDATE facts SET source = 'turn-1'")
    asked = order(selector)
    assert most(lambda: adapter.revoke([asked])) < BOUND
    told = list(pages(adapter.revoke, asked, Revocation))
    assert [len(page.targets) for page in told] == [MAX_PAGE] * (FACTS // MAX_PAGE)
    assert max(len(page.tombstones) for page in told) == MAX_TOMBSTONES
    stones = [mark for page in told for mark in page.tombstones]
    assert len(set(stones)) == len(stones)
    assert {kind: sum(mark.kind is kind for mark in stones) for kind in marks} == marks
    assert list(pages(adapter.revoke, asked, Revocation)) == told
    assert most(lambda: adapter.find([asked])) < BOUND
    found = [target for page in pages(adapter.find, asked, Holding) for target in page.targets]
    targets = [target for page in told for target in page.targets]
    assert found == targets
    page = replace(asked, targets=tuple(targets[:MAX_PAGE]), known=tuple(targets[:MAX_PAGE]))
    assert most(lambda: adapter.erase([page])) < BOUND
    assert most(lambda: adapter.verify([replace(page, known=())])) < 3 * BOUND  # what is left is counted by its ids
    for start in range(MAX_PAGE, FACTS, MAX_PAGE):
        (answer,) = adapter.erase([replace(page, targets=tuple(targets[start : start + MAX_PAGE]))])
        assert answer.erased == MAX_PAGE
    assert adapter.verify([page])[0].remaining == 0
    assert adapter.find([asked])[0].targets == ()
    assert [f.key for f in adapter.store.current(Scope(tenant="acme", user="berta", project="p-1"))] == ["key-1"]


def test_find_lists_once_however_many_pages_it_is_asked_from(adapter: MemoryAdapter) -> None:
    asked = order()
    told = list(pages(adapter.revoke, asked, Revocation))
    listed = [adapter.find([replace(asked, known=page.targets)])[0] for page in told]
    assert listed[0].targets == told[0].targets
    assert listed[0].cursor is not None
    assert listed[1:] == [Holding()] * (len(told) - 1)
    copies = (Target(kind="cache_key", id="k", derived_of=f"fact:{told[0].targets[0].id}"),)
    assert adapter.find([replace(asked, known=copies)])[0] == Holding()
    assert adapter.find([order(known=told[1].targets)])[0].targets == listed[0].targets, "another job's list is its own"


@pytest.mark.parametrize(
    "selector",
    [
        SUBJECT,
        Selector(kind=SelectorKind.KEY, value="passport"),
        Selector(kind=SelectorKind.SOURCE, value="turn-0"),
        Selector(kind=SelectorKind.MEMORY, value="id-0"),
        Selector(kind=SelectorKind.EXPIRED),
    ],
    ids=lambda selector: str(selector.kind.value),
)
def test_by_conditions_comes_to_the_same_as_by_lists(selector: Selector, tmp_path: Path) -> None:
    told = []
    for name, at_once in (("lists", revoking.AT_ONCE), ("conditions", 0)):
        with closing(small(tmp_path / name)) as adapter:
            asked = order(selector, held=frozenset({"id-1"}))
            with writing(adapter.store._engine, ["acme"]) as connection:
                if selector.kind is SelectorKind.EXPIRED:
                    connection.exec_driver_sql("UPDATE facts SET expires = 100 WHERE fact_id <> 'id-2'")
                now, freed = datetime.now(UTC), replace(asked, held=frozenset())
                first = revoking.revoke(connection, GATE, [asked], at=now, at_once=at_once)
                last = revoking.revoke(connection, GATE, [freed], at=now, at_once=at_once)
                rows = connection.exec_driver_sql("SELECT * FROM facts ORDER BY user_id, fact_id, version").all()
            told.append((first, last, [tuple(row) for row in rows]))
    assert told[0] == told[1]
    assert told[0][0][0].targets


def small(folder: Path) -> MemoryAdapter:
    """Give a store with a few facts of known ids: versions of a key in two projects, some of them revoked before."""
    folder.mkdir()
    context = AdapterContext(clock=Now(), gate=GATE, log=structlog.get_logger(), state_dir=folder)
    adapter = MemoryAdapter(context, url=f"sqlite:///{folder / 'm.db'}")
    rows = [
        ("p-0", "passport", 1, "id-0", "[deleted]", "turn-0", 0, "revoked"),
        ("p-0", "passport", 2, "id-0", "The passport number is P1234567", "turn-0", 0, "replaced"),
        ("p-0", "passport", 3, "id-0", "The passport number is P7654321 by now", "turn-1", 1, "live"),
        ("p-1", "passport", 1, "id-1", "It lies in the drawer of the kitchen", "turn-0", 1, "live"),
        ("p-0", "kitchen", 1, "id-2", "The drawer of the kitchen has a number", "turn-2", 1, "live"),
    ]
    adapter.store.revision(ANNA)
    with closing(sqlite3.connect(folder / "m.db")) as connection, connection:
        connection.execute("INSERT INTO tenant_positions VALUES ('acme', 3)")
        accepted = [(f"turn-{n}", f"p-{n % 2}", n + 1) for n in range(3)]
        connection.executemany(
            "INSERT INTO accepted_sources VALUES ('acme', ?, 'anna', ?, 'user_message', ?, 0)", accepted
        )
        connection.execute("INSERT INTO source_ancestry VALUES ('acme', 'turn-1', 'turn-0')")
        connection.executemany("INSERT INTO facts VALUES ('acme', 'anna', ?, ?, ?, ?, ?, ?, 1, 9e999, ?, ?)", rows)
    return adapter


@pytest.mark.parametrize("cursor", ["x", "1@", "1@2:", "1@2:text:k", "-1", "1@2:text:k:m\n"])
def test_cursor_of_another_store_is_refused(adapter: MemoryAdapter, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        adapter.revoke([order(cursor=cursor)])
    assert len(adapter.find([order()])[0].targets) == MAX_PAGE
