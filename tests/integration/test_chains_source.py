"""Chains in the source database, beside the facts: own tables, own version, no hand on anybody else's."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.memory import MemoryStore, open_engine
from adapters.memory.chains import SchemaError, TaskScope, WallClock, open_file, open_in
from adapters.memory.chains.migration import VERSION_1
from adapters.memory.chains.tables import metadata
from adapters.memory.tables import SCHEMA_VERSION
from orchestrator import Gate, Keyring, Permanent, Scope
from tests.fakes import FakeClock
from tests.integration.chains_harness import (
    ALICE,
    DIET,
    FOOD_QUESTION,
    TURN_3,
    Chains,
    StepClock,
    chains_in,
)

chains = chains_in("source", "postgresql")
GATE = Gate(Keyring.create())
TRIPS = Scope(tenant="default", user="alice", project="trips")


def opened_again(chains: Chains) -> list[int]:
    engine = open_engine(chains.url)
    try:
        return [memory.id for memory in open_in(engine, StepClock(), GATE).recall(ALICE, FOOD_QUESTION)]
    finally:
        engine.dispose()


def test_facts_and_chains_of_one_database_do_not_touch_each_other(chains: Chains) -> None:
    facts = MemoryStore(chains.store._engine, GATE, FakeClock())
    facts.register_source(TRIPS, TURN_3)
    facts.put(TRIPS, "diet", DIET, TURN_3)
    memory_id = chains.store.remember(ALICE, "user", DIET, TURN_3)
    assert chains.store.forget(ALICE, memory_id, "user request") == [memory_id]
    assert [fact.value for fact in facts.current(TRIPS)] == [DIET]
    kept = chains.store.remember(ALICE, "user", DIET, TURN_3)
    assert facts.forget(TRIPS, "diet").versions == 1
    assert chains.ids(ALICE, FOOD_QUESTION) == [kept]


@pytest.mark.req("R107")
def test_source_database_is_opened_again_with_what_it_holds(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "user", DIET, TURN_3)
    assert opened_again(chains) == [memory_id]
    assert chains.rows("SELECT version FROM chain_schema") == [(2,)]


@pytest.mark.req("R109")
@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("UPDATE chain_schema SET version = 3", 3),
        ("DELETE FROM chain_schema", 0),
        ("DROP TABLE chain_schema", 0),
        ("DROP TABLE deletion_tenants", 2),
        ("INSERT INTO chain_schema VALUES (1)", 2),
    ],
)
def test_source_database_with_unknown_chains_is_refused(chains: Chains, statement: str, version: int) -> None:
    chains.change(statement)
    with pytest.raises(SchemaError, match=f"^version {version} of the chains"):
        opened_again(chains)


@pytest.mark.req("R109")
def test_source_database_is_no_file_that_stands_alone_and_the_other_way_round(tmp_path: Path) -> None:
    source, alone = tmp_path / "m.db", tmp_path / "chains.db"
    engine = open_engine(f"sqlite:///{source}")
    open_in(engine, StepClock(), GATE)
    engine.dispose()
    with pytest.raises(SchemaError, match=rf"^version {SCHEMA_VERSION} "):
        open_file(source, StepClock())
    open_file(alone, StepClock()).close()
    engine = open_engine(f"sqlite:///{alone}")
    with pytest.raises(Permanent, match=r"^The file is a provenance file that stands alone"):
        open_in(engine, StepClock(), GATE)
    engine.dispose()


def test_many_may_open_a_new_source_database_at_once(chains: Chains) -> None:
    for name in ("deletion_tenants", "memory_tenants", "deletions", "memories", "chain_schema"):
        chains.change(f"DROP TABLE {name}")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened_again, [chains] * 4)) == [[]] * 4
    assert chains.rows("SELECT version FROM chain_schema") == [(2,)]


def test_every_row_of_a_memory_and_of_a_record_has_a_tenant(chains: Chains) -> None:
    of_b = TaskScope("alice", "trip-planning", tenant="Tenant B")
    ids = [chains.store.remember(scope, "user", DIET, TURN_3) for scope in (ALICE, of_b)]
    chains.store.forget(of_b, ids[1], "user request")
    assert chains.rows("SELECT memory_id, tenant, revoked FROM memory_tenants") == [(ids[0], "default", 0)]
    assert chains.rows("SELECT tenant FROM deletion_tenants") == [("Tenant B",)]


def test_wall_clock_shows_the_same_to_a_reading_and_a_look(tmp_path: Path) -> None:
    hands = FakeClock(datetime(2026, 11, 1, tzinfo=UTC))
    store = open_file(tmp_path / "chains.db", WallClock(hands))
    memory_id = store.remember(ALICE, "user", DIET, TURN_3, 1)
    assert [v.created_at for v in store.history(ALICE, memory_id)] == [hands.at]
    assert len(store.recall(ALICE, FOOD_QUESTION)) == 1
    hands.at += timedelta(days=1)
    assert store.recall(ALICE, FOOD_QUESTION) == []
    assert store.purge_expired() == 1
    store.close()


def test_tables_of_the_chains_have_names_of_their_own() -> None:
    from adapters.memory.tables import metadata as of_the_facts

    assert metadata.tables.keys().isdisjoint(of_the_facts.tables.keys() | {"memory_schema"})


@pytest.mark.parametrize("version", [1, 2])
def test_facts_are_kept_in_no_file_that_stands_alone_and_it_stays_as_it_is(tmp_path: Path, version: int) -> None:
    alone = tmp_path / "chains.db"
    if version == 1:
        with closing(sqlite3.connect(alone)) as connection:
            for step in VERSION_1:
                connection.execute(step)
    else:
        open_file(alone, StepClock()).close()
    before = alone.read_bytes()
    engine = open_engine(f"sqlite:///{alone}")
    with pytest.raises(Permanent, match=r"^The file is a provenance file that stands alone, and no source database\.$"):
        MemoryStore(engine, GATE, FakeClock()).revision(TRIPS)
    engine.dispose()
    assert alone.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["chains.db"]
    open_file(alone, StepClock()).close()


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 2", "PRAGMA user_version = 7"])
def test_facts_are_kept_in_no_file_of_somebody_else(tmp_path: Path, statement: str) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
        connection.execute(statement)
    engine = open_engine(f"sqlite:///{tmp_path / 'm.db'}")
    with pytest.raises(Permanent, match=r"^The database belongs to something else than this adapter\.$"):
        MemoryStore(engine, GATE, FakeClock()).revision(TRIPS)
    engine.dispose()
