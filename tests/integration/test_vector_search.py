"""Readers of the index are given points of their own scope whose records are handed out, and nothing when it fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from adapters.vector import Answer, Point, nearest
from orchestrator import InvalidRequest, Scope, StaleSource, StoreLocked, StoreUnreachable, Target
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    DIMENSIONS,
    ELSEWHERE,
    EVERYWHERE,
    FOREIGN,
    PASSPORT,
    Shelf,
    by_key,
    embed,
    index_url,
    open_shelf,
    shelf,
)

__all__ = ["index_url", "shelf"]


def at_angle(cosine: float) -> list[float]:
    """Give a vector at that angle to the first axis."""
    return [cosine, (1 - cosine**2) ** 0.5, *[0.0] * (DIMENSIONS - 2)]


def crowd(shelf: Shelf, scope: Scope, vectors: Sequence[Sequence[float]]) -> list[str]:
    made_from = Target(kind="fact", id="f-1", version=1)
    points = [Point(made_from=made_from, source="s", vector=vector, part=n) for n, vector in enumerate(vectors)]
    return [id_ for n in range(0, len(points), 1000) for id_ in shelf.unguarded.put(scope, points[n : n + 1000]).ids]


def through_the_graph(monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """Take a scope of thirty points for one of many, and leave PostgreSQL no other way than the graph."""
    monkeypatch.setattr(nearest, "MEASURED", 30)
    others = (f"SET LOCAL enable_{way} = off" for way in ("seqscan", "bitmapscan", "sort"))
    monkeypatch.setattr(nearest, "_BY_GRAPH", "; ".join((nearest._BY_GRAPH, *others, *more)))


@pytest.mark.req("R37")
def test_hit_on_version_1_is_dropped_and_counted_when_2_is_active(shelf: Shelf) -> None:
    old = shelf.learn(ANNA, "passport", PASSPORT)
    assert shelf.shown(ANNA, PASSPORT) == [old]
    new = shelf.tell(ANNA, "passport", "It is P7654321 by now.")
    with capture_logs() as logs:
        assert shelf.index.search(ANNA, embed(PASSPORT)) == Answer(dropped=1)
    assert logs == [{"event": "hits.dropped", "points": 1, "log_level": "info"}]
    shelf.enter(ANNA, new, "It is P7654321 by now.")
    answer = shelf.index.search(ANNA, embed(PASSPORT))
    assert ([hit.made_from for hit in answer.hits], answer.dropped) == ([new], 1)
    assert shelf.index.dropped == 2
    assert len(shelf.points()) == 2, "a job takes the old one away, with all versions of the fact"


def test_nothing_that_was_revoked_is_shown_before_any_job_has_reached_the_index(shelf: Shelf) -> None:
    shelf.learn(ANNA, "passport", PASSPORT)
    stays = shelf.learn(ANNA, "seat", "aisle seat")
    shelf.revoke(shelf.order(by_key()))
    assert shelf.shown(ANNA, PASSPORT) == [stays]
    assert len(shelf.points()) == 2


@pytest.mark.req("R32")
def test_ranking_sees_points_of_the_scope_alone(shelf: Shelf) -> None:
    for scope in (BERTA, FOREIGN, ELSEWHERE, EVERYWHERE):
        crowd(shelf, scope, [at_angle(0.99)])
    (own,) = crowd(shelf, ANNA, [at_angle(0.5)])
    (hit,) = shelf.unguarded.search(ANNA, at_angle(1.0), 1).hits
    assert hit.id == own
    assert hit.score == pytest.approx(0.5)
    assert shelf.unguarded.search(Scope(tenant="acme", user="nobody"), at_angle(1.0)) == Answer()


def test_points_without_a_master_do_not_use_up_the_limit(shelf: Shelf) -> None:
    stale = Target(kind="fact", id="gone", version=1)
    points = [Point(made_from=stale, source="s", vector=embed(PASSPORT), part=n) for n in range(200)]
    shelf.unguarded.put(ANNA, points)
    facts = [shelf.learn(ANNA, key, key) for key in ("seat", "meal")]
    answer = shelf.index.search(ANNA, embed(PASSPORT), 1)
    assert len(answer.hits) == 1
    assert answer.hits[0].made_from in facts
    assert answer.dropped == 200


def test_point_that_names_no_origin_is_dropped(shelf: Shelf) -> None:
    shelf.learn(ANNA, "passport", PASSPORT)
    shelf.change("UPDATE vector_points SET kind = NULL, origin = NULL, version = NULL")
    assert shelf.index.search(ANNA, embed(PASSPORT)) == Answer(dropped=1)
    assert shelf.unguarded.search(ANNA, embed(PASSPORT)) == Answer(dropped=1)


class Failing:
    """A source that fails in one way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def active(self, _scope: Scope, _records: Collection[Target]) -> Mapping[Target, int]:
        raise self._error


@pytest.mark.req("R38")
@pytest.mark.parametrize("error", [StoreUnreachable(), StoreLocked(), StaleSource()])
def test_source_that_does_not_answer_gives_an_empty_answer_and_never_all(shelf: Shelf, error: Exception) -> None:
    shelf.learn(ANNA, "passport", PASSPORT)
    with capture_logs() as logs:
        assert shelf.adapter.index(Failing(error)).search(ANNA, embed(PASSPORT)) == Answer(failed=True)
    assert [line["event"] for line in logs] == ["index.failed"]


@pytest.mark.req("R38")
def test_index_that_raises_gives_an_empty_answer_and_never_all(shelf: Shelf) -> None:
    shelf.learn(ANNA, "passport", PASSPORT)
    shelf.change("ALTER TABLE vector_points RENAME TO away")
    assert shelf.index.search(ANNA, embed(PASSPORT)) == Answer(failed=True)
    shelf.change("ALTER TABLE away RENAME TO vector_points")
    assert len(shelf.index.search(ANNA, embed(PASSPORT)).hits) == 1


@pytest.mark.parametrize("road", ["measured", "graph"])
def test_nearest_are_those_that_numpy_finds_by_measuring_all(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    if road == "graph":
        through_the_graph(monkeypatch)
    else:
        monkeypatch.setattr(nearest, "_BY_GRAPH", "SELECT 1 / 0")
    random = np.random.default_rng(7)
    vectors = random.normal(size=(1_200, DIMENSIONS)).astype(np.float32)
    ids = crowd(shelf, ANNA, vectors.tolist())
    crowd(shelf, BERTA, random.normal(size=(300, DIMENSIONS)).tolist())
    for asked in random.normal(size=(5, DIMENSIONS)):
        scores = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
        best = {ids[n]: scores[n] for n in np.argsort(-scores)[:10]}
        hits = shelf.unguarded.search(ANNA, asked.tolist(), 10).hits
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        if road == "measured" or shelf.url.startswith("sqlite"):
            assert [hit.id for hit in hits] == list(best)
            assert [hit.score for hit in hits] == pytest.approx(list(best.values()), abs=1e-5)
        else:
            assert len(best.keys() & {hit.id for hit in hits}) >= 7, "a graph finds most of them"


@pytest.mark.parametrize("graph", ["goes on until it has enough", "gives up", "gives some"])
def test_scope_among_many_others_is_found_although_the_graph_looks_elsewhere(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, graph: str
) -> None:
    if graph == "gives up":
        through_the_graph(monkeypatch, "SET LOCAL hnsw.max_scan_tuples = 1")
    elif graph == "gives some":
        through_the_graph(monkeypatch, "SET LOCAL hnsw.iterative_scan = off")
    else:
        through_the_graph(monkeypatch)
        monkeypatch.setattr(nearest, "_ONE_BY_ONE", "SELECT 1 / 0")
    random = np.random.default_rng(8)
    near = random.normal(size=DIMENSIONS)
    crowd(shelf, BERTA, (near + random.normal(scale=0.1, size=(700, DIMENSIONS))).tolist())
    lying = np.array([near] * 3 + [-near] * 57) + random.normal(scale=0.1, size=(60, DIMENSIONS))
    own = crowd(shelf, ANNA, lying.tolist())
    found = [hit.id for hit in shelf.unguarded.search(ANNA, near.tolist(), 40).hits]
    assert len(found) == 40
    assert set(found) < set(own)


def test_question_about_a_small_scope_reads_no_graph_and_one_about_a_large_one_can(
    postgres_url: str, tmp_path: Path
) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/m.db", postgres_url)
    with closing(shelf.memory), closing(shelf.adapter), shelf.adapter._engine.begin() as connection:
        query = sa.text(
            "EXPLAIN SELECT id FROM vector_points WHERE tenant = 't' AND user_id = 'u' AND project = 'p'"
            " ORDER BY vector <=> CAST(:asked AS vector) LIMIT 10"
        ).bindparams(asked=str(at_angle(1.0)))
        no_other_way = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"
        connection.exec_driver_sql(no_other_way)
        assert "vector_points_nearest" in str(connection.execute(query).all())
        connection.exec_driver_sql(nearest._ONE_BY_ONE)
        connection.exec_driver_sql(no_other_way)
        assert "vector_points_nearest" not in str(connection.execute(query).all())


@pytest.mark.parametrize(
    ("vector", "limit"), [([1.0], 1), ([0.0] * DIMENSIONS, 1), (at_angle(1), 0), (at_angle(1), 1001)]
)
def test_question_that_is_none_is_refused(tmp_path: Path, vector: list[float], limit: int) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/m.db", f"sqlite:///{tmp_path}/v.db")
    with closing(shelf.memory), closing(shelf.adapter), pytest.raises(InvalidRequest):
        shelf.index.search(ANNA, vector, limit)


def test_vectors_come_back_from_postgresql_to_the_last_bit(postgres_url: str, tmp_path: Path) -> None:
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/m.db", postgres_url)
    numbers = np.frombuffer(np.random.default_rng(9).bytes(DIMENSIONS * 3), dtype="<u1").astype(np.float32)
    vector = (numbers[:DIMENSIONS] / 7 + np.float32(1e-9)).astype("<f4")
    with closing(shelf.memory), closing(shelf.adapter):
        crowd(shelf, ANNA, [vector.tolist()])
        assert list(shelf.adapter.live_values()) == [vector.tobytes()]
