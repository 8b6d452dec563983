"""Putting the source back while a hold stands: what it covers stays as it was, and goes when it is free."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator import Selector, SelectorKind
from orchestrator.domain.codes import HoldReason
from orchestrator.service.hold import HoldRequest, place
from tests.integration.jobs_harness import ANNA, RENEWED, SUBJECT, TEXTS, Deployment, deployment, scope_of
from tests.integration.restore_harness import ERASED, Snapshots, cli, run, snapshots

__all__ = ["deployment", "snapshots"]

OF_TURN_1 = Selector(kind=SelectorKind.SOURCE, value="anna/turn-1")
RECORDS = {
    "fact": "SELECT fact_id, 0, value, state FROM facts WHERE user_id = 'anna'",
    "chain": "SELECT id, coalesce(supersedes, 0), text, revoked FROM memories JOIN memory_tenants ON memory_id = id "
    "WHERE user_id = 'anna'",
    "event": "SELECT handle, 0, value, state FROM preference_events WHERE user_id = 'anna'",
    "candidate": "SELECT handle, 0, value, state FROM fact_candidates WHERE user_id = 'anna'",
}


def hold(made: Deployment, item: str) -> str:
    asked = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(item,), reason=HoldReason.LITIGATION, requested_by="tester"
    )
    (placed,) = place(asked, made.control.acceptance)
    made.control.ledger.sweep()
    assert made.control.ledger.hold(str(placed)).standing == "in_force"
    return str(placed)


def free(made: Deployment, held: str) -> None:
    made.control.ledger.release(held, by_ref="ref")
    made.control.ledger.sweep()
    made.run()


def records(made: Deployment) -> dict[str, list[tuple[Any, ...]]]:
    return {kind: sorted(made.rows(query), key=repr) for kind, query in RECORDS.items()}


def tell_more(made: Deployment) -> dict[str, str]:
    """Let a user prefer and a program propose something; give a record of each kind by its handle."""
    scope = scope_of(ANNA)
    event = made.memory.preferences.prefer(scope, "language", "Dutch", "anna/turn-1")
    candidate = made.memory.candidates.propose(scope, "diet", "no nuts", "anna/turn-1", proposed_by="summariser")
    (fact,) = made.memory.store.current(scope)
    (first,) = made.rows(f"SELECT id FROM memories WHERE user_id = 'anna' AND text = '{TEXTS['passport']}'")  # noqa: S608 - ours
    return {"fact": fact.id, "chain": str(first[0]), "event": event.id, "candidate": candidate.id}


@pytest.mark.case(125)
@pytest.mark.case(133)
@pytest.mark.parametrize(
    ("kind", "selector"), [*((kind, SUBJECT) for kind in RECORDS), ("chain", OF_TURN_1), ("fact", OF_TURN_1)]
)
def test_held_record_is_there_after_a_restore_and_goes_when_it_is_free(
    snapshots: Snapshots, kind: str, selector: Selector
) -> None:
    made = snapshots.made
    item = tell_more(made)[kind]
    snapshots.take("day-7")
    held, job = hold(made, item), made.file(selector)
    made.run()
    kept, neighbours = records(made), made.berta()
    assert len(kept[kind]) == (2 if kind == "chain" else 1), "the held record alone is left"
    assert sum(map(len, kept.values())) == len(kept[kind])
    snapshots.put_back("day-7")
    assert records(made) == kept
    assert made.berta() == neighbours
    made.run()
    assert records(made) == kept, "the job goes on, and leaves it"
    free(made, held)
    assert not any(records(made).values())
    named = made.rows(f"SELECT handle FROM revocation_targets WHERE job = '{job}'")  # noqa: S608 - our id
    assert (item,) in named, "it was revoked before it was erased"
    made.take_over()
    made.run()
    assert made.ended(job) == ERASED
    snapshots.put_back("day-7")
    assert not any(records(made).values()), "the job has left nothing now"


def test_version_that_another_job_has_taken_does_not_come_back_with_the_held_record(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("day-7")
    made.memory.store.put(scope_of(ANNA), "colour", "blue", "anna/turn-2")
    run(made, OF_TURN_1)
    (fact,) = made.memory.store.current(scope_of(ANNA))
    assert fact.value == "blue"
    hold(made, fact.id)
    made.file(SUBJECT)
    made.run()
    assert made.memory.store.current(scope_of(ANNA)) == [fact]
    snapshots.put_back("day-7")
    assert records(made)["fact"] == [], "green was forgotten before the hold, and blue is not in the copy"


def test_copy_from_after_the_revoke_keeps_what_the_job_had_left(snapshots: Snapshots) -> None:
    made = snapshots.made
    item = tell_more(made)["chain"]
    held, job = hold(made, item), made.file(SUBJECT)
    made.run()
    snapshots.take("held")
    snapshots.put_back("held")
    assert made.texts(ANNA) == [TEXTS["passport"], RENEWED]
    free(made, held)
    assert made.ended(job) == ERASED
    assert made.texts(ANNA) == []


def test_command_says_that_holds_stand_before_it_asks(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("day-7")
    words = [str(snapshots.folder / "day-7")] if snapshots.is_file else ["--in-place"]
    hold(made, "any-record")
    code, said = cli(made, *words)
    assert code == 1, "nobody has said yes"
    assert said.index("legal holds stand") < said.index("Go on?")
    assert made.control.ledger.epoch("memory") == 1
