"""What holds follows the order of the log, whatever comes late or twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.memory.batch import insert_or_replace
from adapters.memory.engine import writing
from adapters.memory.preferences import Applying, Current, EventNotFound, Operation
from adapters.memory.tables import preferences
from orchestrator import InvalidRequest, Refused, Scope
from tests.integration.preferences_harness import (
    COMET,
    DATA,
    EVENTS,
    KEY,
    READER_A,
    READER_B,
    TENANT,
    Hands,
    hands,
    scope_of,
    url,
)

__all__ = ["hands", "url"]

SCENARIOS: Mapping[str, Mapping[str, Any]] = {each["id"]: each for each in DATA["completion_scenarios"]}
DELETED = Current(sequence=45, operation=Operation.DELETE)


def as_told(held: Current) -> dict[str, Any]:
    """Give what holds in the words of the file."""
    operation = None if held.operation is None else held.operation.value
    return {"source_sequence": held.sequence, "operation": operation, "value": held.value}


def apply_unguarded(hands: Hands, completed: Mapping[str, Any]) -> None:
    """Do what a worker does that takes the last completion for the newest: nothing of ours calls this."""
    row = (TENANT, completed["user"], "", completed["key"], "h", completed["source_sequence"])
    with writing(hands.engine, [TENANT]) as connection:
        insert_or_replace(connection, preferences, [(*row, completed["operation"], completed["value"])])


def run_scenario(hands: Hands, scenario: Mapping[str, Any]) -> tuple[list[bool], list[dict[str, Any]]]:
    hands.accept(DATA["events"])
    assert as_told(hands.log.state(READER_A, KEY)) == scenario["initial"]
    accepted, states = [], []
    for completed in scenario["completions"]:
        if scenario["guard"] == "none":
            apply_unguarded(hands, completed)
            accepted.append(True)
        else:
            accepted.append(hands.log.apply(scope_of(completed), completed["source_sequence"]) is Applying.APPLIED)
        states.append(as_told(hands.log.state(READER_A, KEY)))
    return accepted, states


@pytest.mark.parametrize(
    ("name", "final", "acceptable"),
    [
        pytest.param("S1", (10, "set", "brief"), False, id="S1", marks=pytest.mark.req("R81")),
        pytest.param("S2", (20, "set", "detailed"), True, id="S2", marks=pytest.mark.req("R82")),
        pytest.param("S3", (20, "set", "detailed"), False, id="S3", marks=pytest.mark.req("R83")),
        pytest.param("S4", (45, "delete", None), True, id="S4", marks=pytest.mark.req("R84")),
    ],
)
def test_completions_end_as_the_scenarios_say(
    hands: Hands, name: str, final: tuple[int, str, str | None], *, acceptable: bool
) -> None:
    scenario = SCENARIOS[name]
    accepted, states = run_scenario(hands, scenario)
    assert (accepted, states) == (scenario["accepted"], scenario["states"])
    assert tuple(states[-1].values()) == final == tuple(scenario["final"].values())
    assert scenario["acceptable"] is acceptable
    newest = max(completed["source_sequence"] for completed in scenario["completions"])
    assert (final[0] == newest) is acceptable


@pytest.mark.req("R85")
def test_second_delivery_changes_nothing_and_is_told_from_a_first(hands: Hands) -> None:
    hands.accept(DATA["events"])
    assert hands.log.apply(READER_A, 20) is Applying.APPLIED
    before, revision = hands.rows("SELECT * FROM preferences"), hands.adapter.store.revision(READER_A)
    assert hands.log.apply(READER_A, 20) is Applying.DUPLICATE
    assert hands.log.apply(READER_A, 10) is Applying.REJECTED
    assert hands.rows("SELECT * FROM preferences") == before
    assert hands.adapter.store.revision(READER_A) == revision
    assert (hands.log.anomalies, hands.log.state(READER_A, KEY).value) == (0, "detailed")


@pytest.mark.req("R85")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE preferences SET value = 'another'",
        "UPDATE preferences SET operation = 'delete', value = NULL",
        "UPDATE preferences SET handle = 'another'",
    ],
)
def test_equal_sequence_with_another_content_is_counted_and_told_by_id(hands: Hands, change: str) -> None:
    hands.accept(DATA["events"])
    hands.log.apply(READER_A, 20)
    hands.execute(change, TENANT, 20)
    held = hands.log.state(READER_A, KEY)
    with capture_logs() as logs:
        assert hands.log.apply(READER_A, 20) is Applying.ANOMALY
    assert (hands.log.anomalies, hands.log.state(READER_A, KEY)) == (1, held)
    said = {"event": "preference.contradicted", "log_level": "warning", "event_id": "tenant-a/20", "sequence": 20}
    assert logs == [said]


@pytest.mark.req("R88")
def test_update_of_one_key_leaves_the_others(hands: Hands) -> None:
    hands.accept(DATA["events"])
    assert hands.log.apply(READER_A, 20) is Applying.APPLIED
    assert hands.log.apply(READER_A, 40) is Applying.APPLIED
    assert hands.log.state(READER_A, "theme") == Current(sequence=40, operation=Operation.SET, value="dark")
    assert hands.log.state(READER_A, KEY) == Current(sequence=20, operation=Operation.SET, value="detailed")
    found = hands.log.resolve(READER_A, KEY, 40)
    assert (found.value, found.sequence) == ("detailed", 20)


def test_event_moves_into_its_own_scope_alone(hands: Hands) -> None:
    hands.accept(DATA["events"])
    hands.accept(DATA["events"], "tenant-b")
    assert hands.log.apply(COMET, 25) is Applying.APPLIED
    assert hands.rows("SELECT tenant, user_id, project, key, sequence, value FROM preferences") == [
        (TENANT, "reader-A", "Comet", KEY, 25, "brief")
    ]
    assert [hands.log.state(scope, KEY).sequence for scope in (COMET, READER_A, READER_B)] == [25, 0, 0]


@pytest.mark.parametrize(
    ("scope", "sequence"),
    [
        (READER_A, 25),
        (COMET, 20),
        (READER_B, 20),
        (Scope(tenant="tenant-b", user="reader-A"), 20),
        (Scope(tenant=TENANT, user="reader-A", project="Comet-2"), 25),
        (READER_A, 21),
    ],
)
def test_event_of_another_scope_is_as_one_that_never_was(hands: Hands, scope: Scope, sequence: int) -> None:
    hands.accept(DATA["events"])
    with pytest.raises(EventNotFound, match="no such event in this scope"):
        hands.log.apply(scope, sequence)
    assert hands.rows("SELECT * FROM preferences") == []


@pytest.mark.parametrize("sequence", [-1, 2**63, True, 20.0, "20"])
def test_sequence_that_is_none_is_refused(hands: Hands, sequence: Any) -> None:  # noqa: ANN401 - what a caller may send
    with pytest.raises(InvalidRequest, match="sequence must be a whole number from 0 on"):
        hands.log.apply(READER_A, sequence)


@pytest.mark.req("R87")
def test_sequence_is_never_given_by_a_client_and_never_twice(hands: Hands) -> None:
    hands.adapter.store.register_source(READER_A, "said")
    for accept in (hands.log.record, hands.log.prefer):
        with pytest.raises(TypeError):
            accept(READER_A, KEY, "brief", "said", sequence=999999)  # type: ignore[call-arg]
    assert hands.log.record(READER_A, KEY, "brief", "said").sequence == 2
    hands.accept(DATA["events"])
    for twice in (EVENTS[20], {**EVENTS[20], "value": "another"}, {**EVENTS[30], "sequence": 20}):
        with pytest.raises(Refused, match="There is an event of this sequence already"):
            hands.accept([twice])
    assert hands.rows("SELECT value FROM preference_events WHERE sequence = 20") == [("detailed",)]
    assert hands.log.record(READER_A, KEY, "brief", "said").sequence == 46, "after what was accepted elsewhere"
    assert hands.adapter.store.register_source(READER_A, "said-2") == 47


@pytest.mark.req("R86")
@pytest.mark.parametrize("order", [(10, 20, 45), (45, 20, 10), (20, 45, 10), (45, 10, 20), (10, 45, 20), (20, 10, 45)])
def test_every_order_of_completions_ends_at_the_newest(hands: Hands, order: Sequence[int]) -> None:
    hands.accept(DATA["events"])
    for sequence in order:
        newest = hands.log.state(READER_A, KEY).sequence
        expected = Applying.APPLIED if sequence > newest else Applying.REJECTED
        assert hands.log.apply(READER_A, sequence) is expected
    assert hands.log.state(READER_A, KEY) == DELETED
