"""Batches of the memory adapter, on both databases: set-based, and answered as one order after another would be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    EraseOrder,
    Gate,
    InvalidRequest,
    Keyring,
    Scope,
    Selector,
    SelectorKind,
)

GATE = Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32}))
ANNA = Scope(tenant="tenant-a", user="anna", project="trips")
ABROAD = replace(ANNA, project="Abroad ")
BEN = Scope(tenant="tenant-a", user="ben", project="trips")
FOREIGN = Scope(tenant="tenant-b", user="anna", project="trips")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
SEAT, PASSPORT = (Selector(kind=SelectorKind.KEY, value=key) for key in ("seat", "passport"))


class At:
    def now(self) -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC)


def open_adapter(folder: Path, url: str) -> MemoryAdapter:
    return MemoryAdapter(AdapterContext(clock=At(), gate=GATE, log=structlog.get_logger(), state_dir=folder), url=url)


@pytest.fixture(params=["sqlite", "postgresql"])
def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryAdapter]:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with closing(open_adapter(tmp_path, url)) as made:
        yield made


def fill(adapter: MemoryAdapter) -> None:
    store = adapter.store
    for scope in (ANNA, ABROAD, BEN, FOREIGN):
        name = f"{scope.user}/{scope.project}"
        store.register_source(scope, name)
        for key, text in (("passport", "P1234567 until May"), ("seat", "aisle seat"), ("Zoo", "likes owls")):
            store.put(scope, key, f"{text} of {scope.user}", name, user_statement=True)
    store.register_source(ANNA, "summary-9", kind="model", derived_from=["anna/trips"])
    store.put(ANNA, "trip", "travels with P1234567", "summary-9")


def order(selector: Selector, scope: Scope) -> EraseOrder:
    deadline = At().now() + timedelta(seconds=20)
    return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)


def story(adapter: MemoryAdapter, *, together: bool) -> list[object]:
    """Run orders that overlap through every phase, in one batch or one by one; give all but the random ids."""
    fill(adapter)
    orders = [
        order(PASSPORT, ANNA),
        order(PASSPORT, Scope(tenant="tenant-a", user="anna")),
        order(Selector(kind=SelectorKind.SOURCE, value="anna/trips"), ANNA),
        order(Selector(kind=SelectorKind.MEMORY, value=adapter.store.current(BEN)[0].id), BEN),
        order(SUBJECT, ANNA),
        order(SUBJECT, FOREIGN),
        order(SUBJECT, replace(ANNA, user="Anna")),
    ]
    batches = [orders] if together else [[one] for one in orders]
    revoked = [answer for batch in batches for answer in adapter.revoke(batch)]
    again = [answer for batch in batches for answer in adapter.revoke(batch)]
    found = [answer for batch in batches for answer in adapter.find(batch)]
    assert again == revoked
    assert [set(f.targets) for f in found] == [set(r.targets) for r in revoked]
    asked = [replace(o, targets=f.targets) for o, f in zip(orders, found, strict=True)]
    seen = adapter.verify(asked)
    erased = [answer for one in ([asked] if together else [[o] for o in asked]) for answer in adapter.erase(one)]
    told: list[object] = [(r.tombstones, r.revision, len(r.targets)) for r in revoked]
    told += [s.remaining for s in seen] + [(e.erased, e.already_absent) for e in erased]
    told += [s.remaining for s in adapter.verify(asked)]
    told += [[(f.key, f.version) for f in adapter.store.current(s)] for s in (ANNA, ABROAD, BEN, FOREIGN)]
    return told


def test_a_batch_and_both_databases_answer_as_one_order_after_another(tmp_path: Path, postgres_url: str) -> None:
    told = []
    for name, url, together in (
        ("one by one", f"sqlite:///{tmp_path / 'one.db'}", False),
        ("together", f"sqlite:///{tmp_path / 'all.db'}", True),
        ("together on PostgreSQL", postgres_url, True),
    ):
        with closing(open_adapter(tmp_path / name, url)) as adapter:
            told.append(story(adapter, together=together))
    assert told[0] == told[1] == told[2]
    assert told[0][-4:] == [[], [("Zoo", 1), ("seat", 1)], [("passport", 1), ("seat", 1)], []]


def test_two_orders_of_one_job_in_a_batch_revoke_once(adapter: MemoryAdapter) -> None:
    fill(adapter)
    first = order(SUBJECT, ANNA)
    one, other, same = adapter.revoke([first, replace(first, unit=uuid4()), first])
    assert one == other == same
    assert adapter.store.revision(ANNA) == one.revision == 5


def test_one_order_past_its_deadline_or_with_a_wrong_cursor_lets_nothing_happen(adapter: MemoryAdapter) -> None:
    fill(adapter)
    late = replace(order(SUBJECT, BEN), deadline=At().now() - timedelta(microseconds=1))
    with pytest.raises(DeadlinePassed):
        adapter.revoke([order(SUBJECT, ANNA), late])
    with pytest.raises(InvalidRequest):
        adapter.revoke([order(SUBJECT, ANNA), replace(order(SUBJECT, BEN), cursor="x")])
    assert [len(adapter.store.current(scope)) for scope in (ANNA, BEN)] == [4, 3]


def test_no_orders_are_no_answers(adapter: MemoryAdapter) -> None:
    for verb in (adapter.revoke, adapter.find, adapter.erase, adapter.verify):
        assert list(verb([])) == []


def test_a_batch_takes_as_many_statements_as_one_order(adapter: MemoryAdapter) -> None:
    people = [Scope(tenant="tenant-a", user=f"user-{n}", project="p") for n in range(21)]
    for scope in people:
        adapter.store.register_source(scope, f"{scope.user}/turn")
        adapter.store.put(scope, "seat", "aisle", f"{scope.user}/turn")
    counted: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        counted.append(statement)

    sa.event.listen(adapter._engine, "before_cursor_execute", count)
    costs = []
    for scopes in (people[:1], people[1:]):
        orders = [order(SEAT, scope) for scope in scopes]
        counted.clear()
        targets = [answer.targets for answer in adapter.revoke(orders)]
        adapter.find(orders)
        adapter.erase([replace(o, targets=t) for o, t in zip(orders, targets, strict=True)])
        costs.append(len(counted))
    assert costs[0] == costs[1] < 40
    assert [len(adapter.store.current(scope)) for scope in people] == [0] * 21
