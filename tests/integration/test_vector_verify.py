"""Looking again: each road sees by itself what the others do not, and none is one that finds or erases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from adapters.vector import Point, erase, find, verify
from adapters.vector.probe import BITS, probe, sketch
from orchestrator import EraseOrder, Gate, Keyring, Target
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    DIMENSIONS,
    EVERYWHERE,
    FOREIGN,
    RING,
    SUBJECT,
    Shelf,
    by_key,
    by_source,
    embed,
    index_url,
    open_shelf,
    shelf,
)

__all__ = ["index_url", "shelf"]
FACT: Final = Target(kind="fact", id="f-1", version=1)
ROADS: Final = ("_BY_ID", "_BY_ORIGIN", "_OF_SOURCE", "_OF_SUBJECT")
NOTHING: Final = " AND 1 = 0"


def only(monkeypatch: pytest.MonkeyPatch, road: str | None) -> None:
    """Make every other look by SQL blind."""
    for name in set(ROADS) - {road}:
        monkeypatch.setattr(verify, name, getattr(verify, name) + NOTHING)


def planted(shelf: Shelf) -> EraseOrder:
    """Plant a point among others, and give the order that names it."""
    for scope, made_from in ((BERTA, replace(FACT, id="f-9")), (FOREIGN, FACT)):
        shelf.unguarded.put(scope, [Point(made_from=made_from, source="turn-6", vector=embed("mine"))])
    others = [Point(made_from=replace(FACT, version=2), source="s", vector=embed(str(n)), part=n) for n in range(40)]
    shelf.unguarded.put(ANNA, others)
    (id_,) = shelf.unguarded.put(ANNA, [Point(made_from=FACT, source="turn-6", vector=embed("mine"))]).ids
    return shelf.order(by_key(), targets=(Target(kind="point", id=id_),))


def restored(shelf: Shelf, order: EraseOrder) -> None:
    """Erase, and bring the row back as it was."""
    (row,) = shelf.rows(f"SELECT * FROM vector_points WHERE id = '{order.targets[0].id}' AND user_id = 'anna'")  # noqa: S608
    assert shelf.erase(order).erased == 1
    marks = ", ".join(["?" if shelf.url.startswith("sqlite") else "%s"] * len(row))
    with shelf.adapter._engine.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO vector_points VALUES ({marks})", row)  # noqa: S608


@pytest.mark.parametrize(
    ("road", "change", "expected"),
    [
        ("_BY_ID", lambda o: o, 1),
        ("_BY_ORIGIN", lambda o: replace(o, targets=(), known=(FACT,)), 1),
        ("_BY_ORIGIN", lambda o: replace(o, targets=(), known=(replace(FACT, version=0),)), 41),
        ("_OF_SOURCE", lambda o: replace(o, targets=(), selector=by_source("turn-6")), 1),
        ("_OF_SUBJECT", lambda o: replace(o, targets=(), selector=SUBJECT, revision=0), 41),
        (None, lambda o: o, 1),
    ],
)
def test_each_road_sees_by_itself_what_came_back(
    shelf: Shelf,
    monkeypatch: pytest.MonkeyPatch,
    road: str | None,
    change: Callable[[EraseOrder], EraseOrder],
    expected: int,
) -> None:
    order = planted(shelf)
    restored(shelf, order)
    only(monkeypatch, road)
    assert shelf.seen(change(order)).remaining == expected


def test_neighbourhood_is_looked_at_part_by_part(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "PART", 1)
    order = planted(shelf)
    restored(shelf, order)
    only(monkeypatch, None)
    assert shelf.seen(order).remaining == 1


def test_without_its_roads_a_look_is_blind(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    order = replace(planted(shelf), known=(FACT,))
    restored(shelf, order)
    only(monkeypatch, None)
    monkeypatch.setattr(verify, "_SKETCHES", verify._SKETCHES + NOTHING)
    assert shelf.seen(order).remaining == 0


def test_point_that_is_seen_on_every_road_counts_once(shelf: Shelf) -> None:
    order = replace(planted(shelf), known=(FACT,), selector=by_source("turn-6"))
    restored(shelf, order)
    assert shelf.seen(order).remaining == 1


def test_point_that_lost_its_owner_is_seen_by_its_id_and_by_its_origin(shelf: Shelf) -> None:
    order = planted(shelf)
    shelf.change("UPDATE vector_points SET user_id = 'nobody' WHERE user_id = 'anna'")
    assert shelf.found(replace(order, known=(FACT,), selector=SUBJECT)) == ()
    assert shelf.seen(order).remaining == 1
    assert shelf.seen(replace(order, targets=(), known=(FACT,))).remaining == 1
    assert shelf.seen(replace(order, scope=replace(ANNA, tenant="nobody"), known=(FACT,))).remaining == 0


def test_scope_of_one_project_is_no_other_and_later_points_are_none_of_it(shelf: Shelf) -> None:
    for scope in (ANNA, replace(ANNA, project="work"), EVERYWHERE):
        shelf.unguarded.put(scope, [Point(made_from=FACT, source="s", vector=embed("mine"))])
    shelf.change("UPDATE vector_points SET revision = 7")

    def remaining(order: EraseOrder) -> int:
        return shelf.seen(order).remaining

    assert remaining(shelf.order(SUBJECT)) == 1
    assert remaining(shelf.order(SUBJECT, EVERYWHERE)) == 3
    assert [remaining(shelf.order(SUBJECT, EVERYWHERE, revision=n)) for n in (6, 7, 8)] == [0, 3, 3]


def test_look_calls_nothing_that_finds_or_erases(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    order = replace(planted(shelf), known=(FACT,))

    def none(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(find, "find", none)
    monkeypatch.setattr(find, "_page_of", none)
    monkeypatch.setattr(erase, "erase", none)
    assert shelf.seen(order).remaining >= 1


def clusters(count: int) -> np.ndarray:
    """Give vectors that lie in heaps, as those of texts do: four to a heap."""
    random = np.random.default_rng(11)
    centres = np.repeat(random.normal(size=(count // 4, 384)), 4, axis=0)
    return (centres + random.normal(scale=0.3, size=(count, 384))).astype("<f4")


def test_probe_leads_to_its_point_among_two_thousand() -> None:
    vectors = clusters(2_000)
    gate = Gate(RING)
    lengths = np.linalg.norm(vectors, axis=1)
    for n in range(0, 2_000, 37):
        kept = sketch(gate, "acme", f"p-{n}", vectors[n].tobytes())
        asked = probe(gate, "acme", f"p-{n}", kept, 384)
        scores = vectors @ asked / lengths
        assert n in np.argsort(-scores)[: verify.NEAREST]
        cosine = scores[n] / np.linalg.norm(asked)
        assert 0.2 < cosine < 0.6, "near to it, and not it"


def test_sketch_says_nothing_without_the_keyring() -> None:
    vector = clusters(4)[0].tobytes()
    rings = [Gate(RING), *(Gate(Keyring.create()) for _ in range(30))]
    kept = [sketch(gate, "acme", "p-1", vector) for gate in rings]
    kept += [sketch(rings[0], tenant, point, vector) for tenant, point in (("acme", "p-2"), ("other", "p-1"))]
    alike = [BITS - (kept[0] ^ other).bit_count() for other in kept[1:] if (kept[0] < 0) == (other < 0)]
    assert len(set(kept)) == len(kept)
    assert all(BITS * 0.2 < bits < BITS * 0.8 for bits in alike)
    assert sketch(rings[0], "acme", "p-1", vector) == kept[0]
    assert all(-(2**63) <= number < 2**63 for number in kept)


def test_probe_asks_the_graph_as_a_reader_would(postgres_url: str, tmp_path: Path) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/m.db", postgres_url)
    with closing(shelf.memory), closing(shelf.adapter):
        order = planted(shelf)
        kept = sketch(Gate(RING), "acme", "x", np.array(embed("mine"), dtype="<f4").tobytes())
        asked = probe(Gate(RING), "acme", "x", kept, DIMENSIONS)
        (hit, *_) = shelf.unguarded.search(ANNA, asked.tolist(), 3).hits
        assert hit.id == order.targets[0].id
