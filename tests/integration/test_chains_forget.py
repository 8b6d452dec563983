"""Forgetting: every version goes, a record without text stays, and no id comes back."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta

import pytest

from adapters.memory.chains import MemoryNotFound
from orchestrator import ErasureError
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    DAY,
    DIET,
    EVERYWHERE,
    IN_A_FILE,
    OTHER_TASK,
    PASSPORT,
    PASSPORT_QUESTION,
    START,
    TURN_3,
    TURN_6,
    TURN_12,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
in_a_file = chains_in(*IN_A_FILE)
NEW_PASSPORT = "Alice's passport number is P7654321."
REASON = "user request at trip-planning/turn-20"


@pytest.mark.req("R105")
@pytest.mark.parametrize("named", [0, 1])
def test_forget_by_any_id_deletes_all_versions_and_leaves_a_record_without_text(chains: Chains, named: int) -> None:
    old = chains.store.remember(ALICE, "user", PASSPORT, TURN_6)
    stays = chains.store.remember(ALICE, "user", DIET, TURN_3)
    new = chains.store.correct(ALICE, old, NEW_PASSPORT, TURN_12)
    neighbour = "SELECT * FROM memories WHERE id = :id"
    before = chains.rows(neighbour, id=stays)

    assert chains.store.forget(OTHER_TASK, (old, new)[named], REASON) == [old, new]

    assert chains.rows("SELECT id FROM memories") == [(stays,)]
    assert chains.rows("SELECT memory_id FROM memory_tenants") == [(stays,)]
    assert chains.rows(neighbour, id=stays) == before
    for memory_id in (old, new):
        with pytest.raises(MemoryNotFound):
            chains.store.history(ALICE, memory_id)
    (record,) = chains.store.deletions(ALICE)
    assert record.memory_ids == (old, new)
    assert (record.reason, record.deleted_at) == (REASON, START + timedelta(minutes=3))
    assert chains.store.deletions(BOB) == []
    assert not any("P1234567" in str(row) or "P7654321" in str(row) for row in chains.rows("SELECT * FROM deletions"))


@pytest.mark.req("R105")
def test_record_is_visible_from_every_task_of_its_user(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "task", PASSPORT, TURN_6)
    chains.store.forget(ALICE, memory_id, REASON)
    assert [record.memory_ids for record in chains.store.deletions(OTHER_TASK)] == [(memory_id,)]


@pytest.mark.req("R115")
def test_ids_are_never_reused(chains: Chains) -> None:
    chains.store.remember(ALICE, "user", DIET, TURN_3)
    highest = chains.store.remember(ALICE, "user", PASSPORT, TURN_6, 1)
    assert chains.store.forget(ALICE, highest, REASON) == [highest]
    innocent = chains.store.remember(BOB, "user", DIET, TURN_3)
    assert innocent > highest
    chains.store.remember(ALICE, "user", PASSPORT, TURN_6, 1)
    chains.clock.advance(2 * DAY)
    assert chains.store.purge_expired() == 1
    last = max(memory_id for record in chains.store.deletions(ALICE) for memory_id in record.memory_ids)
    assert chains.store.correct(BOB, innocent, NEW_PASSPORT, TURN_12) > last


@pytest.mark.req("R115")
def test_ids_are_not_reused_in_an_emptied_store_that_is_opened_again(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "user", PASSPORT, TURN_6)
    chains.store.forget(ALICE, memory_id, REASON)
    chains.store.close()
    assert chains.store.remember(ALICE, "user", DIET, TURN_3) > memory_id


@pytest.mark.req("R105")
def test_nothing_is_recorded_of_a_deletion_that_left_a_version(in_a_file: Chains) -> None:
    memory_id = in_a_file.store.remember(ALICE, "user", PASSPORT, TURN_6)
    in_a_file.change("CREATE TRIGGER keeps BEFORE DELETE ON memories BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(ErasureError, match="still there"):
        in_a_file.store.forget(ALICE, memory_id, REASON)
    assert in_a_file.store.deletions(ALICE) == []
    assert in_a_file.ids(ALICE, PASSPORT_QUESTION) == [memory_id]


def refusing(chains: Chains) -> list[Callable[[], object]]:
    """Give calls that the database refuses while it has the text in hand."""
    memory_id = chains.store.remember(ALICE, "user", PASSPORT, TURN_6)
    for what in ("INSERT", "DELETE"):
        chains.change(f"CREATE TRIGGER no_{what} BEFORE {what} ON memories BEGIN SELECT RAISE(ABORT, 'P1234567'); END")
    return [
        lambda: chains.store.remember(ALICE, "user", PASSPORT, TURN_6),
        lambda: chains.store.correct(ALICE, memory_id, PASSPORT, TURN_6),
        lambda: chains.store.forget(ALICE, memory_id, PASSPORT),
    ]


def test_no_error_of_the_database_repeats_a_text(in_a_file: Chains) -> None:
    for call in refusing(in_a_file):
        with pytest.raises(ErasureError) as caught:
            call()
        assert "P1234567" not in "".join(traceback.format_exception(caught.value))
