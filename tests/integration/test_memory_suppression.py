"""What the memory store does not learn again after a revocation, and what it still learns."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from adapters.memory import MemoryAdapter
from orchestrator import GateRefused, Refusal, Selector, SelectorKind, TombstoneKind
from tests.integration.memory_harness import BY_KEY, BY_SOURCE, FOREIGN, NEIGHBOUR, PASSPORT, SUBJECT, TURN_6, A, World


@pytest.mark.req("R142")
@pytest.mark.req("R143")
def test_a_revoked_source_and_what_derives_from_it_recreate_nothing(world: World) -> None:
    world.store.register_source(A, "summary-9", kind="model", derived_from=[TURN_6])
    world.revoke(world.order(BY_SOURCE))
    assert world.refused(A, "passport", PASSPORT, TURN_6) is Refusal.SOURCE_TOMBSTONED
    assert world.refused(A, "document", "holds P1234567", "summary-9") is Refusal.SOURCE_TOMBSTONED
    with pytest.raises(GateRefused):
        world.store.register_source(A, "summary-11", kind="model", derived_from=["summary-9"])
    with pytest.raises(GateRefused):
        world.store.register_source(A, TURN_6)


@pytest.mark.req("R144")
def test_an_extraction_that_waits_for_the_revocation_is_blocked(world: World) -> None:
    revoked, writing = threading.Event(), threading.Event()
    answers: list[int | Refusal] = []
    late = MemoryAdapter(world.context, url=f"sqlite:///{world.file}")
    assert late.store.knows_source(A, TURN_6), "the extraction has read its source before"

    def hold_open(_connection: sa.Connection) -> None:
        revoked.set()
        assert writing.wait(10)

    def extract() -> None:
        assert revoked.wait(10)
        threading.Timer(0.3, writing.set).start()  # the revocation commits while the put is waiting for its lock
        try:
            answers.append(late.store.put(A, "passport", PASSPORT, TURN_6))
        except GateRefused as error:
            answers.append(error.refusal)

    sa.event.listen(world.adapter._engine, "commit", hold_open)
    thread = threading.Thread(target=extract)
    thread.start()
    world.revoke(world.order())
    thread.join()
    late.close()
    assert answers == [Refusal.KEY_TOMBSTONED]
    assert world.rows("SELECT count(*) FROM facts WHERE value LIKE '%P1234567' AND user_id = 'reader-A'") == [(1,)]


@pytest.mark.req("R145")
@pytest.mark.req("R146")
def test_only_a_fresh_statement_of_the_user_brings_a_text_back_and_once(world: World) -> None:
    world.revoke(world.order())
    world.store.register_source(A, "model-1", kind="model")
    assert world.refused(A, "passport", PASSPORT, TURN_6, user_statement=True) is Refusal.KEY_TOMBSTONED
    assert world.refused(A, "passport", PASSPORT, "model-1", user_statement=True) is Refusal.TEXT_TOMBSTONED
    assert world.refused(A, "passport", PASSPORT, "turn-30") is Refusal.TEXT_TOMBSTONED
    assert world.tell(A, "passport", PASSPORT, "turn-31", user_statement=True) == 2
    assert world.refused(A, "passport", PASSPORT, "turn-31", user_statement=True) is Refusal.TEXT_TOMBSTONED
    assert world.refused(A, "passport", PASSPORT, TURN_6) is Refusal.KEY_TOMBSTONED
    assert [f.source for f in world.store.current(A) if f.key == "passport"] == ["turn-31"]


@pytest.mark.req("R147")
def test_tombstones_hold_no_personal_text(world: World) -> None:
    for selector in (BY_KEY, BY_SOURCE, SUBJECT):
        world.revoke(world.order(selector))
    tables = ("source_tombstones", "source_revocations", "revocation_targets")
    dump = "\n".join(str(row) for name in tables for row in world.rows(f"SELECT * FROM {name}"))  # noqa: S608
    assert dump.count("source_token") > 0
    for word in ("P1234567", "p1234567", "reader-A", "passport", TURN_6, "aisle"):
        assert word not in dump


@pytest.mark.req("R148")
def test_other_sources_keys_and_users_pass(world: World) -> None:
    world.revoke(world.order())
    assert world.tell(A, "hotel", "quiet rooms", "trip-planning/turn-7") == 1
    assert world.tell(A, "meal", "vegetarian", TURN_6) == 1, "another fact of the same message"
    assert world.refused(A, "document", "P1234567 is the number", TURN_6) is Refusal.TOKEN_TOMBSTONED
    assert world.tell(NEIGHBOUR, "passport", PASSPORT, "reader-B/turn-7") == 2
    assert world.tell(FOREIGN, "passport", PASSPORT, TURN_6) == 2


def test_the_tombstone_kinds_of_a_key_cover_the_sources_behind_a_fact(world: World) -> None:
    world.store.register_source(A, "summary-9", kind="model", derived_from=[TURN_6])
    world.tell(A, "document", "Passport X9876543", "summary-9")
    answer = world.revoke(world.order(Selector(kind=SelectorKind.KEY, value="document")))
    assert sum(t.kind is TombstoneKind.FACT_SOURCE for t in answer.tombstones) == 2
    assert world.refused(A, "note", "it is x9876543", TURN_6) is Refusal.TOKEN_TOMBSTONED
