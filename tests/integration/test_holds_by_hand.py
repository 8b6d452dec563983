"""What the memory store erases when it is told to by itself: a legal hold keeps it back as it does a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from adapters.langgraph import ScopedStore
from adapters.memory.cli import app as memory
from adapters.memory.engine import writing
from orchestrator import Refusal, RuleRefused
from orchestrator.domain.codes import HoldReason
from orchestrator.service.hold import HoldRequest, place
from tests.integration.jobs_harness import ANNA, BERTA, Deployment, deployment, scope_of

__all__ = ["deployment"]

HERS, NEIGHBOUR = scope_of(ANNA), scope_of(BERTA)
FACTS, CANDIDATES = "SELECT * FROM facts ORDER BY fact_id", "SELECT * FROM fact_candidates ORDER BY handle"


@pytest.fixture
def told(deployment: Deployment) -> Deployment:
    for who in (ANNA, BERTA):
        deployment.tell(who)
        deployment.memory.store.put(scope_of(who), "size", "medium", f"{who.user}/turn-1")
    return deployment


def hold(made: Deployment, *items: str) -> str:
    asked = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=items, reason=HoldReason.LITIGATION, requested_by="tester"
    )
    (placed,) = place(asked, made.control.acceptance)
    return str(placed)


def refused(call: Callable[[], object]) -> Refusal:
    with pytest.raises(RuleRefused) as caught:
        call()
    return caught.value.refusal


def item(made: Deployment, key: str) -> str:
    (found,) = [fact.id for fact in made.memory.store.current(HERS) if fact.key == key]
    return found


@pytest.mark.case(133)
def test_held_subject_loses_no_fact_by_hand_and_a_neighbour_does(told: Deployment) -> None:
    held, before = hold(told), told.rows(FACTS)
    store = told.memory.store
    assert refused(lambda: store.forget(HERS, "colour")) is Refusal.HELD
    assert told.rows(FACTS) == before
    assert store.forget(HERS, "shoes").outcome == "nothing_found"
    assert store.forget(NEIGHBOUR, "colour").outcome == "revoked"
    told.control.ledger.release(held, by_ref="ref")
    assert store.forget(HERS, "colour").versions == 1


@pytest.mark.case(134)
def test_held_fact_stays_and_the_next_one_goes(told: Deployment) -> None:
    hold(told, item(told, "colour"))
    store = told.memory.store
    assert refused(lambda: store.forget(HERS, "colour")) is Refusal.HELD
    assert store.forget(HERS, "size").outcome == "revoked"
    assert [fact.key for fact in store.current(HERS)] == ["colour"]


def test_hold_in_one_project_keeps_all_that_a_call_without_project_names(told: Deployment) -> None:
    hold(told, item(told, "colour"))
    elsewhere = replace(HERS, project="home")
    told.memory.store.register_source(elsewhere, "anna/turn-3")
    told.memory.store.put(elsewhere, "colour", "red", "anna/turn-3")
    everywhere = replace(HERS, project=None)
    before = told.rows(FACTS)
    assert refused(lambda: told.memory.store.forget(everywhere, "colour")) is Refusal.HELD
    assert told.rows(FACTS) == before, "all of it or nothing"


@pytest.mark.parametrize("on_all", [True, False])
def test_held_candidate_is_not_rejected(told: Deployment, on_all: bool) -> None:  # noqa: FBT001 - a parameter
    candidates = told.memory.candidates
    made = candidates.propose(HERS, "diet", "no nuts", "anna/turn-1", proposed_by="summariser")
    held, before = hold(told, *([] if on_all else [made.id])), told.rows(CANDIDATES)
    assert refused(lambda: candidates.reject(HERS, made.id)) is Refusal.HELD
    assert refused(lambda: candidates.under({}).reject(HERS, made.id)) is Refusal.HELD
    assert told.rows(CANDIDATES) == before
    told.control.ledger.release(held, by_ref="ref")
    candidates.reject(HERS, made.id)
    assert candidates.inspect(HERS, made.id).value is None


def test_held_candidate_becomes_no_fact_that_the_hold_does_not_cover(told: Deployment) -> None:
    """Its text would go over into another record; under a hold on the subject that one is covered, too."""
    candidates = told.memory.candidates
    made = candidates.propose(HERS, "diet", "no nuts", "anna/turn-1", proposed_by="summariser")
    held, before = hold(told, made.id), told.rows(CANDIDATES)
    assert refused(lambda: candidates.accept(HERS, made.id, source="anna/turn-2", expected_version=0)) is Refusal.HELD
    assert told.rows(CANDIDATES) == before
    told.control.ledger.release(held, by_ref="ref")
    hold(told)
    assert candidates.accept(HERS, made.id, source="anna/turn-2", expected_version=0) == 1


def test_hold_that_arrives_while_a_call_waits_for_its_turn_is_seen(told: Deployment) -> None:
    """The call asks inside its transaction: what it had asked before would be of another time."""
    done, before = list[Any](), told.rows(FACTS)

    def forget() -> None:
        try:
            done.append(told.memory.store.forget(HERS, "colour"))
        except RuleRefused as error:
            done.append(error.refusal)

    waiting = threading.Thread(target=forget)
    with writing(told.memory._engine, [HERS.tenant]):
        waiting.start()
        waiting.join(0.3)
        assert done == [], "it waits for the one before it"
        hold(told)
    waiting.join(30)
    assert done == [Refusal.HELD]
    assert told.rows(FACTS) == before


def test_graph_deletes_nothing_that_is_held(told: Deployment) -> None:
    graph = ScopedStore(told.memory.store, HERS, source=lambda: "anna/turn-2")
    graph.put(("notes",), "shoes", {"size": 38})
    held = hold(told)
    assert refused(lambda: graph.delete(("notes",), "shoes")) is Refusal.HELD
    assert graph.get(("notes",), "shoes") is not None
    told.control.ledger.release(held, by_ref="ref")
    graph.delete(("notes",), "shoes")
    assert graph.get(("notes",), "shoes") is None


def test_commands_say_what_holds_them_back(told: Deployment) -> None:
    hold(told)
    place_of = ["--tenant", "acme", "--user", "anna", "--project", "trips", "--dir", _state(told)]
    candidate = told.memory.candidates.propose(HERS, "diet", "no nuts", "anna/turn-1", proposed_by="summariser")
    for words in (["forget", "colour"], ["candidate", "reject", candidate.id]):
        answer = CliRunner().invoke(_root(), ["memory", *words, *place_of])
        assert answer.exit_code == 3
        assert answer.stderr == f"expunge: {Refusal.HELD.sentence}\n"
        assert answer.stdout == ""


def _root() -> typer.Typer:
    root = typer.Typer()
    root.add_typer(memory, name="memory")
    return root


def _state(made: Deployment) -> str:
    return str(made.control.settings.state_dir)
