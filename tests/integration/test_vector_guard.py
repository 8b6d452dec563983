"""Writers of the index pass its guard: what is made from a record that its source does not hand out is not written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from adapters.vector import Point, Stored
from orchestrator import InvalidRequest, Refusal, Scope, StoreUnreachable, Target
from tests.integration.vector_harness import (
    ANNA,
    DIMENSIONS,
    FOREIGN,
    PASSPORT,
    PATIENCE,
    Pausing,
    Shelf,
    by_key,
    embed,
    index_url,
    open_shelf,
    shelf,
)

__all__ = ["index_url", "shelf"]


class Away:
    """A source that does not answer."""

    def active(self, _scope: Scope, _records: Collection[Target]) -> Mapping[Target, int]:
        raise StoreUnreachable


@pytest.mark.req("R37")
def test_vector_of_a_version_that_is_not_active_any_more_is_refused_and_counted(shelf: Shelf) -> None:
    old = shelf.tell(ANNA, "passport", PASSPORT)
    new = shelf.tell(ANNA, "passport", "It is P7654321 by now.")
    assert (old.version, new.version) == (1, 2)
    with capture_logs() as logs:
        assert shelf.enter(ANNA, old, PASSPORT) == Stored(refused=1)
    assert shelf.points() == []
    assert shelf.index.refused == {Refusal.STALE_REVISION: 1}
    assert logs == [{"event": "gate.refused", "code": "stale_revision", "points": 1, "log_level": "info"}]
    assert len(shelf.enter(ANNA, new, PASSPORT).ids) == 1


@pytest.mark.case(25)
def test_late_batch_ends_quietly_with_one_line(shelf: Shelf) -> None:
    facts = [shelf.tell(ANNA, f"key-{n}", f"Line {n}.", "anna/turn-1") for n in range(50)]
    stays = shelf.tell(ANNA, "stays", "This one stays.", "anna/turn-2")
    shelf.revoke(shelf.order(by_key("key-0")))
    for n in range(1, 50):
        shelf.memory.store.forget(ANNA, f"key-{n}")
    points = [Point(made_from=fact, source="anna/turn-1", vector=embed(fact.id)) for fact in (*facts, stays)]
    with capture_logs() as logs:
        stored = shelf.index.put(ANNA, points)
    assert (len(stored.ids), stored.refused) == (1, 50)
    assert [line["event"] for line in logs] == ["gate.refused"]
    assert [row[1] for row in shelf.points()] == list(stored.ids)


def test_guard_that_cannot_ask_lets_nothing_in(shelf: Shelf) -> None:
    fact = shelf.tell(ANNA, "passport", PASSPORT)
    with pytest.raises(StoreUnreachable):
        shelf.adapter.index(Away()).put(ANNA, [Point(made_from=fact, source="s", vector=embed(PASSPORT))])
    assert shelf.points() == []


def in_the_middle_of_a_write(shelf: Shelf, meanwhile: Callable[[Pausing], None]) -> Stored:
    """Let a writer pass the guard, and do something before it commits."""
    fact = shelf.tell(ANNA, "passport", PASSPORT)
    masters = Pausing(shelf.masters)
    late = shelf.adapter.index(masters)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(late.put, ANNA, [Point(made_from=fact, source="anna/passport", vector=embed(PASSPORT))])
        try:
            assert masters.asked.wait(PATIENCE)
            meanwhile(masters)
        finally:
            masters.goes_on.set()
        return writing.result(PATIENCE)


def test_look_waits_for_a_writer_that_was_let_in_before_the_revoke_and_sees_what_it_wrote(shelf: Shelf) -> None:
    with ThreadPoolExecutor(1) as pool:

        def delete(masters: Pausing) -> None:
            _, order = shelf.revoke(shelf.order(by_key()))
            assert shelf.found(order) == (), "nothing is written yet"
            looking = pool.submit(shelf.seen, order)
            threading.Timer(0.3, masters.goes_on.set).start()
            seen.append(looking.result(PATIENCE).remaining)
            orders.append(order)

        seen: list[int] = []
        orders = list[object]()
        stored = in_the_middle_of_a_write(shelf, delete)
    assert len(stored.ids) == 1
    assert seen == [1]
    assert shelf.shown(ANNA, PASSPORT) == [], "no reader is given it in the meantime"
    erased, again = shelf.run(by_key())
    assert (erased.erased, again.remaining, shelf.points()) == (1, 0, [])


def test_writer_of_another_tenant_keeps_no_look_waiting_on_postgresql(shelf: Shelf) -> None:
    def delete(_masters: Pausing) -> None:
        order = shelf.order(by_key(), FOREIGN)
        if shelf.url.startswith("postgresql"):
            assert shelf.seen(order).remaining == 0

    assert len(in_the_middle_of_a_write(shelf, delete).ids) == 1


def test_in_one_database_with_its_source_a_revoke_waits_for_the_writer(postgres_url: str, tmp_path: Path) -> None:
    shelf = open_shelf(tmp_path, postgres_url, postgres_url)
    with closing(shelf.memory), closing(shelf.adapter), ThreadPoolExecutor(1) as pool:
        found: list[int] = []

        def delete(masters: Pausing) -> None:
            revoking = pool.submit(shelf.revoke, shelf.order(by_key()))
            threading.Timer(0.3, masters.goes_on.set).start()
            found.append(len(shelf.found(revoking.result(PATIENCE)[1])))

        in_the_middle_of_a_write(shelf, delete)
        assert found == [1]


def test_point_that_is_written_twice_is_one_point_with_the_last_vector(shelf: Shelf) -> None:
    fact = shelf.learn(ANNA, "passport", PASSPORT)
    before = shelf.points()
    shelf.enter(ANNA, fact, PASSPORT, "anna/passport")
    assert shelf.points() == before
    shelf.enter(ANNA, fact, "another model", "anna/passport")
    assert shelf.ids() == {before[0][1]}
    assert shelf.index.search(ANNA, embed("another model")).hits[0].score == pytest.approx(1)
    shelf.enter(ANNA, fact, PASSPORT, "anna/passport", part=1)
    assert len(shelf.points()) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"vector": [1.0] * (DIMENSIONS - 1)}, "vector"),
        ({"vector": [1.0] * (DIMENSIONS + 1)}, "vector"),
        ({"vector": [0.0] * DIMENSIONS}, "vector"),
        ({"vector": [float("nan")] * DIMENSIONS}, "vector"),
        ({"vector": [float("inf"), *[1.0] * (DIMENSIONS - 1)]}, "vector"),
        ({"vector": [1e39] * DIMENSIONS}, "vector"),
        ({"vector": ["P1234567"] * DIMENSIONS}, "vector"),
        ({"source": " "}, "source"),
        ({"part": -1}, "part"),
        ({"made_from": Target(kind="a fact", id="f", version=1)}, "kind"),
        ({"made_from": Target(kind="fact", id="", version=1)}, "memory"),
        ({"made_from": Target(kind="fact", id="f", version=-1)}, "version"),
    ],
)
def test_point_that_is_none_is_refused_by_the_name_of_its_field(
    tmp_path: Path, change: dict[str, object], field: str
) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/m.db", f"sqlite:///{tmp_path}/v.db")
    point = Point(made_from=Target(kind="fact", id="f", version=1), source="s", vector=embed(PASSPORT))
    with closing(shelf.memory), closing(shelf.adapter):
        with pytest.raises(InvalidRequest) as caught:
            shelf.unguarded.put(ANNA, [point, replace(point, **change)])  # type: ignore[arg-type]
        assert caught.value.facts["field"] == field
        assert "P1234567" not in str(caught.value)
        assert shelf.points() == [], "nothing is half written"
        shelf.unguarded.put(ANNA, [replace(point, vector=np.array(embed(PASSPORT)))])
        assert len(shelf.points()) == 1


def test_vector_that_pgvector_cannot_measure_is_refused_there(shelf: Shelf) -> None:
    fact = shelf.tell(ANNA, "passport", PASSPORT)
    point = Point(made_from=fact, source="s", vector=[1e30] * DIMENSIONS)
    if shelf.url.startswith("sqlite"):
        assert len(shelf.index.put(ANNA, [point]).ids) == 1
        assert shelf.index.search(ANNA, [1.0] * DIMENSIONS).hits[0].score == pytest.approx(1)
    else:
        with pytest.raises(InvalidRequest):
            shelf.index.put(ANNA, [point])


def test_no_more_points_than_a_thousand_are_written_at_once(shelf: Shelf) -> None:
    point = Point(made_from=Target(kind="fact", id="f", version=1), source="s", vector=embed(PASSPORT))
    with pytest.raises(InvalidRequest, match="at most 1000"):
        shelf.unguarded.put(ANNA, [replace(point, part=n) for n in range(1_001)])
    assert shelf.unguarded.put(ANNA, []) == Stored()
