"""What a graph has put is forgotten by a job as any fact is, and no old conversation puts it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from adapters.langgraph import ScopedStore, key_of, text_of
from orchestrator import GateRefused, Refusal, Scope, Selector, SelectorKind
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.integration.jobs_harness import ANNA, BERTA, SUBJECT, Deployment, deployment, scope_of
from tests.integration.langgraph_harness import told

__all__ = ["deployment"]

TRIP, SEAT = ("trips", "papers"), ("trips", "seats")
PASSPORT = {"kind": "passport", "text": "It says:\nP1234567"}
ANNAS, BERTAS = scope_of(ANNA), scope_of(BERTA)
FOREIGN = replace(ANNAS, tenant="other")
BY_KEY = Selector(kind=SelectorKind.KEY, value=key_of(TRIP, "passport"))
BY_SOURCE = Selector(kind=SelectorKind.SOURCE, value="anna/turn-6")


def store_at(deployment: Deployment, scope: Scope, turn: str) -> ScopedStore:
    if not deployment.memory.store.knows_source(scope, turn):
        deployment.memory.store.register_source(scope, turn)
    return ScopedStore(deployment.memory.store, scope, lambda: turn)


def learn(deployment: Deployment) -> dict[Scope, ScopedStore]:
    """Let a graph put a paper and a seat in one turn, for three users."""
    stores = {scope: store_at(deployment, scope, f"{scope.user}/turn-6") for scope in (ANNAS, BERTAS, FOREIGN)}
    for store in stores.values():
        store.put(TRIP, "passport", PASSPORT)
        store.put(SEAT, "passport", {"text": "aisle"})
    return stores


def refusal(put: Callable[[], object]) -> Refusal:
    with pytest.raises(GateRefused) as caught:
        put()
    assert "P1234567" not in str(caught.value)
    return caught.value.refusal


def forget(deployment: Deployment, selector: Selector, stores: dict[Scope, ScopedStore]) -> None:
    before = {scope: stores[scope].search(()) for scope in (BERTAS, FOREIGN)}
    job = deployment.file(selector, ANNAS.project)
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert "P1234567" not in str(deployment.rows("SELECT * FROM facts WHERE user_id = 'anna' AND tenant = 'acme'"))
    assert {scope: stores[scope].search(()) for scope in (BERTAS, FOREIGN)} == before, "nobody else notices"
    assert all(len(items) == 2 for items in before.values())


@pytest.mark.req("R27")
@pytest.mark.req("R28")
def test_request_for_a_key_takes_the_item_and_an_old_turn_does_not_put_it_again(deployment: Deployment) -> None:
    stores = learn(deployment)
    old = store_at(deployment, ANNAS, "anna/turn-7")
    forget(deployment, BY_KEY, stores)
    annas = stores[ANNAS]
    assert annas.get(TRIP, "passport") is None
    assert told(annas.search(())) == [(SEAT, "passport", {"text": "aisle"})]
    assert annas.list_namespaces() == [SEAT]
    for store in (annas, old):
        assert refusal(partial(store.put, TRIP, "passport", {"text": "none"})) is Refusal.KEY_TOMBSTONED
    # A later turn may say something else of it, and not the same, in whatever order a graph has the fields.
    new = store_at(deployment, ANNAS, "anna/turn-8")
    same = dict(reversed(PASSPORT.items()))
    assert refusal(lambda: new.put(TRIP, "passport", same)) is Refusal.TEXT_TOMBSTONED
    new.put(TRIP, "passport", {"text": "applied for"})
    assert told(new.search(TRIP)) == [(TRIP, "passport", {"text": "applied for"})]
    # The user may say it again, by the application.
    text = text_of(PASSPORT)
    deployment.memory.store.put(ANNAS, key_of(TRIP, "passport"), text, "anna/turn-8", user_statement=True)
    assert told(annas.search(TRIP)) == [(TRIP, "passport", PASSPORT)]


def test_word_of_what_was_forgotten_is_known_again_behind_a_line_break(deployment: Deployment) -> None:
    stores = learn(deployment)
    forget(deployment, BY_KEY, stores)
    again = {"summary": "a seat, and also\nP1234567\tby the way"}
    assert refusal(lambda: stores[ANNAS].put(SEAT, "note", again)) is Refusal.TOKEN_TOMBSTONED


def test_request_for_a_source_takes_all_that_its_turn_has_put(deployment: Deployment) -> None:
    stores = learn(deployment)
    later = store_at(deployment, ANNAS, "anna/turn-9")
    later.put(SEAT, "meal", {"text": "fish"})
    forget(deployment, BY_SOURCE, stores)
    assert told(stores[ANNAS].search(())) == [(SEAT, "meal", {"text": "fish"})]
    assert refusal(lambda: stores[ANNAS].put(TRIP, "other", {"text": "new"})) is Refusal.SOURCE_TOMBSTONED
    register = partial(deployment.memory.store.register_source, ANNAS)
    assert refusal(lambda: register("anna/turn-6")) is Refusal.SOURCE_TOMBSTONED
    assert refusal(lambda: register("anna/summary", derived_from=["anna/turn-6"])) is Refusal.SOURCE_TOMBSTONED
    assert refusal(lambda: later.put(TRIP, "passport", PASSPORT)) is Refusal.TEXT_TOMBSTONED


def test_request_for_a_subject_takes_everything_and_begins_anew_with_the_next_turn(deployment: Deployment) -> None:
    stores = learn(deployment)
    old = store_at(deployment, ANNAS, "anna/turn-7")
    forget(deployment, SUBJECT, stores)
    assert stores[ANNAS].search(()) == []
    assert stores[ANNAS].list_namespaces() == []
    assert refusal(lambda: old.put(SEAT, "k", {"text": "new"})) is Refusal.SOURCE_TOMBSTONED
    new = store_at(deployment, ANNAS, "anna/turn-8")
    new.put(SEAT, "k", {"text": "window"})
    assert told(new.search(())) == [(SEAT, "k", {"text": "window"})]


def test_from_the_revoke_on_no_item_is_handed_out(deployment: Deployment) -> None:
    annas = learn(deployment)[ANNAS]
    deployment.file(BY_SOURCE, ANNAS.project)
    assert run_batch(deployment.engine, "memory", Phase.REVOKE) == 1
    assert annas.get(TRIP, "passport") is None
    assert (annas.search(()), annas.list_namespaces()) == ([], [])


def test_delete_of_a_graph_leaves_the_job_its_work(deployment: Deployment) -> None:
    """The item is blank when the request comes: the job finds its rows, takes them, and bars the key."""
    stores = learn(deployment)
    stores[ANNAS].delete(TRIP, "passport")
    stores[ANNAS].delete(TRIP, "passport")
    forget(deployment, BY_KEY, stores)
    assert refusal(lambda: stores[ANNAS].put(TRIP, "passport", {"text": "x"})) is Refusal.KEY_TOMBSTONED
