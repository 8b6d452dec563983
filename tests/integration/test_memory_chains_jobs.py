"""Jobs over chains, by the engine as a deployment opens it: with an answer in the cache that was made from each."""

from __future__ import annotations

import pytest

from orchestrator import GateRefused, Refusal, Selector, SelectorKind, Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.service.hold import HoldRequest, place
from tests.integration.jobs_harness import ANNA, BERTA, RENEWED, SUBJECT, TEXTS, Deployment, Died, deployment, scope_of

__all__ = ["deployment"]


def refusal(deployment: Deployment, text: str, source: str, *, stated: bool = False) -> Refusal | None:
    if not deployment.memory.store.knows_source(scope_of(ANNA), source):
        deployment.memory.store.register_source(scope_of(ANNA), source)
    try:
        deployment.memory.chains.remember(ANNA, "task", text, source, user_statement=stated)
    except GateRefused as error:
        return error.refusal
    return None


@pytest.mark.parametrize(
    ("kind", "stays", "answers"),
    [
        (SelectorKind.MEMORY, ["Sits at the aisle.", "Eats fish."], ["seat", "meal"]),
        (SelectorKind.SOURCE, [], []),
        (SelectorKind.SUBJECT, [], []),
        (SelectorKind.KEY, [*TEXTS.values(), RENEWED], [*TEXTS]),
    ],
)
def test_a_job_takes_what_its_selector_names_and_it_is_not_learned_again(
    deployment: Deployment, kind: SelectorKind, stays: list[str], answers: list[str]
) -> None:
    ids = deployment.tell(ANNA)
    deployment.tell(BERTA)
    neighbours = deployment.berta()
    values = {SelectorKind.MEMORY: str(ids["passport"] + 3), SelectorKind.SOURCE: "anna/turn-1"}
    values[SelectorKind.KEY] = "colour"
    job = deployment.file(Selector(kind=kind, value=values.get(kind)))
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == stays
    assert deployment.answers(ANNA) == answers
    assert deployment.berta() == neighbours
    assert deployment.answers(BERTA) == [*TEXTS]
    gone = kind is not SelectorKind.KEY
    records = deployment.rows("SELECT reason FROM deletions")
    assert records == [(f"expunge job {job}",)] * (1 if kind is SelectorKind.MEMORY else 3 if gone else 0)
    if not gone:
        return
    for text, name in ((TEXTS["passport"], "anna/turn-1"), (RENEWED, "anna/turn-2")):
        assert refusal(deployment, text, name) is not None
    by_name = {
        SelectorKind.MEMORY: (None, Refusal.TEXT_TOMBSTONED),
        SelectorKind.SOURCE: (Refusal.SOURCE_TOMBSTONED, Refusal.TEXT_TOMBSTONED),
        SelectorKind.SUBJECT: (Refusal.SOURCE_TOMBSTONED, None),
    }
    different, elsewhere = by_name[kind]
    assert refusal(deployment, "A window would do.", "anna/turn-1") is different
    assert refusal(deployment, TEXTS["passport"], "anna/turn-8") is elsewhere
    assert refusal(deployment, TEXTS["passport"], "anna/turn-9", stated=True) is None


def test_a_project_names_the_memories_of_its_task_alone(deployment: Deployment) -> None:
    deployment.tell(ANNA)
    job = deployment.file(SUBJECT, project="trips")
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == [TEXTS["meal"]]


def test_late_answer_from_a_memory_of_the_user_in_general_is_refused_in_every_project(deployment: Deployment) -> None:
    meal = deployment.tell(ANNA)["meal"]
    scope, store = scope_of(ANNA), deployment.memory.store
    store.put(scope, "colour", "blue", "anna/turn-1")
    read = store.revision_for_answers(scope)
    job = deployment.file(Selector(kind=SelectorKind.MEMORY, value=str(meal)))
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    made_from = [Target(kind="memory", id=str(meal), version=meal)]
    assert not deployment.cache.answers.put(scope, "late", "so: fish", made_from, read)
    assert deployment.cache.answers.put(scope, "later", "so: blue", made_from, store.revision_for_answers(scope))


@pytest.mark.parametrize("kind", [SelectorKind.SUBJECT, SelectorKind.SOURCE, SelectorKind.MEMORY])
def test_held_chain_and_its_cached_answer_stay_until_the_hold_is_lifted(
    deployment: Deployment, kind: SelectorKind
) -> None:
    ids = deployment.tell(ANNA)
    item = str(ids["passport"])
    (hold,) = place(
        HoldRequest(
            tenant=ANNA.tenant, user=ANNA.user, items=(item,), reason=HoldReason.LITIGATION, requested_by="counsel"
        ),
        deployment.control.acceptance,
    )
    values = {SelectorKind.MEMORY: item, SelectorKind.SOURCE: "anna/turn-1"}
    job = deployment.file(Selector(kind=kind, value=values.get(kind)))
    deployment.run()
    assert deployment.view(job).state is not JobState.COMPLETED
    assert deployment.view(job).held
    assert [v.text for v in deployment.memory.chains.history(ANNA, ids["passport"])] == [TEXTS["passport"], RENEWED]
    assert deployment.answers(ANNA) == (["passport"] if kind is not SelectorKind.MEMORY else [*TEXTS])
    deployment.control.ledger.release(str(hold), by_ref="somebody")
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == ([] if kind is not SelectorKind.MEMORY else [TEXTS["seat"], TEXTS["meal"]])
    assert "passport" not in deployment.answers(ANNA)


@pytest.mark.parametrize("at", ["memory.revoke", "memory.erase"])
def test_process_that_dies_between_effect_and_receipt_leaves_nothing_undone(deployment: Deployment, at: str) -> None:
    deployment.tell(ANNA)
    deployment.tell(BERTA)
    neighbours = deployment.berta()
    job = deployment.file(Selector(kind=SelectorKind.SOURCE, value="anna/turn-2"))
    deployment.die_once(at)
    with pytest.raises(Died):
        deployment.run()
    deployment.take_over()
    deployment.run()
    assert deployment.ended(job)[0] is JobState.COMPLETED
    assert deployment.texts(ANNA) == [TEXTS["seat"], TEXTS["meal"]]
    assert deployment.berta() == neighbours
    (receipt,) = [
        r for r in deployment.control.ledger.receipts(job) if (r.adapter, r.phase) == ("memory", "erase") and r.expected
    ]
    assert (receipt.erased, receipt.already_absent) == ((2, 0) if at == "memory.revoke" else (0, 2))
    assert len(deployment.rows("SELECT * FROM deletions")) == 1
