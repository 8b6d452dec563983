"""Accepting an event: its place in the order, the gate before it, the revisions behind it; all of it or nothing."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from adapters.memory.preferences import Current, Operation, State
from orchestrator import (
    EraseOrder,
    GateRefused,
    InvalidRequest,
    Refusal,
    Scope,
    Selector,
    SelectorKind,
    Transient,
)
from tests.integration.preferences_harness import COMET, KEY, ORION, READER_A, READER_B, TENANT, Hands, hands, url

__all__ = ["hands", "url"]

FOREIGN = Scope(tenant="tenant-b", user="reader-A")
WRITE = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b")
WRITTEN = ("preference_events", "preferences", "tenant_positions", "fact_revisions", "confirmations")
PATIENCE = 20


def order(selector: Selector, scope: Scope = READER_A) -> EraseOrder:
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)


def forget(hands: Hands, kind: SelectorKind, value: str | None = None, scope: Scope = READER_A) -> None:
    hands.adapter.revoke([order(Selector(kind=kind, value=value), scope)])


def refused(hands: Hands, scope: Scope, value: str | None, source: str, *, stated: bool = False) -> Refusal:
    with pytest.raises(GateRefused) as caught:
        hands.log.record(scope, KEY, value, source, user_statement=stated)
    assert value is None or value not in str(caught.value)
    return caught.value.refusal


def tables(hands: Hands) -> list[list[tuple[Any, ...]]]:
    return [sorted(hands.rows(f"SELECT * FROM {name}")) for name in WRITTEN]  # noqa: S608 - names of ours


def test_event_gets_the_tenants_next_position_with_its_source_and_time(hands: Hands) -> None:
    hands.clock.at = datetime(2026, 11, 1, tzinfo=UTC)
    assert hands.adapter.store.register_source(FOREIGN, "said") == 1
    assert hands.adapter.store.register_source(READER_A, "said") == 1
    first = hands.log.record(READER_A, KEY, "brief", "said")
    assert hands.adapter.store.register_source(READER_A, "said-2") == 3
    second = hands.log.record(COMET, KEY, None, "said-2")
    assert (first.sequence, first.operation, first.value) == (2, Operation.SET, "brief")
    assert (second.sequence, second.operation, second.value) == (4, Operation.DELETE, None)
    assert first.accepted_at_us == 1_793_491_200_000_000
    query = "SELECT sequence, handle, project, operation, value, source, accepted_at_us, state FROM preference_events"
    assert sorted(hands.rows(query)) == [
        (2, first.id, "", "set", "brief", "said", first.accepted_at_us, "live"),
        (4, second.id, "Comet", "delete", None, "said-2", first.accepted_at_us, "live"),
    ]
    assert hands.log.record(FOREIGN, KEY, "brief", "said").sequence == 2


def test_recorded_event_holds_when_it_is_applied_and_a_preferred_one_at_once(hands: Hands) -> None:
    event = hands.say(READER_A, KEY, "brief")
    assert hands.log.resolve(READER_A, KEY).value == "brief"
    assert hands.log.state(READER_A, KEY) == Current()
    hands.log.apply(READER_A, event.sequence)
    assert hands.log.state(READER_A, KEY) == Current(sequence=2, operation=Operation.SET, value="brief")
    gone = hands.log.prefer(READER_A, KEY, None, "said")
    assert hands.log.state(READER_A, KEY) == Current(sequence=gone.sequence, operation=Operation.DELETE)
    found = hands.log.resolve(READER_A, KEY)
    assert (found.state, found.sequence) == (State.DELETED, gone.sequence)


def test_source_has_to_be_an_accepted_one_of_the_user(hands: Hands) -> None:
    hands.adapter.store.register_source(READER_B, "of-b")
    hands.adapter.store.register_source(FOREIGN, "of-tenant-b")
    before = tables(hands)
    for source in ("never-seen", "of-b", "of-tenant-b"):
        for value in ("brief", None):
            with capture_logs() as logs:
                assert refused(hands, READER_A, value, source) is Refusal.UNKNOWN_SOURCE
            assert logs == [{"event": "gate.refused", "log_level": "info", "code": "unknown_source"}]
    assert (tables(hands), hands.log.refused) == (before, {Refusal.UNKNOWN_SOURCE: 6})


def test_what_was_forgotten_comes_back_by_no_event(hands: Hands) -> None:
    store = hands.adapter.store
    for scope, source in ((READER_A, "old"), (READER_A, "old-2"), (READER_B, "old-b")):
        store.register_source(scope, source)
    store.put(READER_A, KEY, "brief", "old")
    forget(hands, SelectorKind.KEY, KEY)
    for value in ("brief", "another", None):
        assert refused(hands, READER_A, value, "old-2") is Refusal.KEY_TOMBSTONED
    store.register_source(READER_A, "new")
    assert refused(hands, READER_A, " BRIEF ", "new") is Refusal.TEXT_TOMBSTONED
    assert hands.log.record(READER_A, KEY, "another", "new").value == "another"
    assert hands.log.record(READER_A, KEY, None, "new").value is None
    forget(hands, SelectorKind.SOURCE, "new")
    assert refused(hands, COMET, "another", "new") is Refusal.SOURCE_TOMBSTONED
    forget(hands, SelectorKind.SUBJECT, scope=READER_B)
    assert refused(hands, READER_B, "brief", "old-b") in {Refusal.SOURCE_TOMBSTONED, Refusal.SUBJECT_TOMBSTONED}
    assert hands.log.record(COMET, KEY, "brief", "old").value == "brief", "another scope"


def test_statement_of_the_user_confirms_a_key_once_and_a_delete_uses_none_up(hands: Hands) -> None:
    store = hands.adapter.store
    store.register_source(READER_A, "old")
    store.put(READER_A, KEY, "brief", "old")
    forget(hands, SelectorKind.KEY, KEY)
    store.register_source(READER_A, "new")
    store.register_source(COMET, "in-comet")
    hands.log.record(READER_A, KEY, None, "new", user_statement=True)
    assert refused(hands, READER_A, "brief", "new") is Refusal.TEXT_TOMBSTONED
    assert refused(hands, READER_A, "brief", "in-comet", stated=True) is Refusal.TEXT_TOMBSTONED
    hands.log.record(READER_A, KEY, "brief", "new", user_statement=True)
    assert refused(hands, READER_A, "brief", "new", stated=True) is Refusal.TEXT_TOMBSTONED


@pytest.mark.req("R144")
def test_event_that_waits_for_a_revocation_is_refused(hands: Hands) -> None:
    hands.adapter.store.register_source(READER_A, "old")
    revoked, goes_on = threading.Event(), threading.Event()

    def hold_open(_connection: sa.Connection) -> None:
        revoked.set()
        assert goes_on.wait(PATIENCE)

    def late() -> Refusal:
        assert revoked.wait(PATIENCE)
        threading.Timer(0.3, goes_on.set).start()
        return refused(hands, READER_A, "brief", "old")

    sa.event.listen(hands.engine, "commit", hold_open, once=True)
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(late)
        forget(hands, SelectorKind.KEY, KEY)
        assert called.result(PATIENCE) is Refusal.KEY_TOMBSTONED
    assert hands.rows("SELECT * FROM preference_events") == []


@pytest.mark.parametrize(
    ("key", "value", "source"),
    [
        ("", "secret", "said"),
        ("x" * 513, "secret", "said"),
        ("a\0b", "secret", "said"),
        (KEY, "", "said"),
        (KEY, " \t", "said"),
        (KEY, "secret" * 400, "said"),
        (KEY, "secret\0", "said"),
        (KEY, "secret\ud800", "said"),
        (KEY, 7, "said"),
        (KEY, b"secret", "said"),
        (KEY, "secret", ""),
        (KEY, None, " "),
        ("", None, "said"),
    ],
)
def test_what_may_not_be_stored_is_refused_before_anything_is_written(
    hands: Hands,
    key: str,
    value: Any,  # noqa: ANN401 - what a caller may send
    source: str,
) -> None:
    hands.adapter.store.register_source(READER_A, "said")
    before = tables(hands)
    for accept in (hands.log.record, hands.log.prefer):
        with pytest.raises(InvalidRequest) as caught:
            accept(READER_A, key, value, source)
        assert "secret" not in str(caught.value)
    assert tables(hands) == before


def test_longest_value_is_taken(hands: Hands) -> None:
    assert hands.say(READER_A, KEY, "x" * 2000).value == "x" * 2000


def test_event_of_a_project_raises_its_revision_alone(hands: Hands) -> None:
    hands.say(READER_B, KEY, "brief", "b-said")
    hands.say(COMET, KEY, "brief")
    assert [hands.adapter.store.revision(s) for s in (COMET, ORION, READER_A, READER_B, FOREIGN)] == [1, 0, 0, 1, 0]


def test_event_in_general_raises_the_revision_of_every_project_of_its_user(hands: Hands) -> None:
    store = hands.adapter.store
    store.register_source(READER_A, "said")
    for _ in range(5):
        store.put(COMET, "hat", "straw", "said", math.inf)
    store.put(replace(COMET, user="reader-B"), "hat", "straw", hands.say(READER_B, KEY, "brief", "b-said").source)
    hands.say(FOREIGN, KEY, "brief")
    cached = {scope: store.revision_for_answers(scope) for scope in (COMET, ORION, READER_A)}
    assert cached == {COMET: 5, ORION: 0, READER_A: 0}
    hands.log.record(READER_A, KEY, "brief", "said")
    assert [store.revision(scope) for scope in (COMET, READER_A)] == [6, 6]
    for scope, revision in cached.items():
        assert store.revision_for_answers(scope) > revision, "an answer that was cached before is void"
    assert [store.revision(scope) for scope in (READER_B, replace(COMET, user="reader-B"), FOREIGN)] == [1, 1, 1]


def test_whatever_changes_what_holds_raises_the_revision_and_nothing_else_does(hands: Hands) -> None:
    store, event = hands.adapter.store, hands.say(READER_A, KEY, "brief")
    assert store.revision(READER_A) == 1
    hands.log.apply(READER_A, event.sequence)
    assert store.revision(READER_A) == 2
    hands.log.apply(READER_A, event.sequence)
    hands.log.replay(READER_A)
    hands.log.resolve(READER_A, KEY)
    assert store.revision(READER_A) == 2
    hands.execute("DELETE FROM preferences", TENANT, event.sequence)
    assert (hands.log.replay(READER_A), store.revision(READER_A)) == (1, 3)
    hands.log.prefer(READER_A, KEY, "detailed", "said")
    assert store.revision(READER_A) == 4


CALLS: dict[str, Callable[[Hands], object]] = {
    "record": lambda hands: hands.log.record(READER_A, KEY, "detailed", "said", user_statement=True),
    "prefer": lambda hands: hands.log.prefer(READER_A, KEY, "detailed", "said", user_statement=True),
    "apply": lambda hands: hands.log.apply(READER_A, 2),
    "replay": lambda hands: hands.log.replay(READER_A),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_that_breaks_off_at_any_write_leaves_all_as_it_was(hands: Hands, name: str) -> None:
    hands.say(READER_A, KEY, "brief")
    before, passed, left = tables(hands), 0, 0

    class BreaksOff(Exception):
        pass

    def strike(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:  # noqa: ANN401 - the event's own
        nonlocal left
        left -= bool(WRITE.match(statement))
        if left < 0:
            raise BreaksOff

    while True:
        left = passed
        sa.event.listen(hands.engine, "before_cursor_execute", strike)
        try:
            CALLS[name](hands)
            break
        except BreaksOff:
            passed += 1
        finally:
            sa.event.remove(hands.engine, "before_cursor_execute", strike)
        assert tables(hands) == before
    assert passed >= 2, "it writes more than once"
    assert tables(hands) != before
    assert hands.log.replay(READER_A) == (1 if name == "record" else 0)


def test_value_stands_in_no_log_no_error_and_no_printed_form(hands: Hands) -> None:
    with capture_logs() as logs:
        event = hands.say(READER_A, KEY, "secret-brief")
        hands.log.apply(READER_A, event.sequence)
        held = hands.log.state(READER_A, KEY)
        with pytest.raises(GateRefused):
            hands.log.record(READER_A, KEY, "secret-brief", "never-seen")
    assert (event.value, held.value) == ("secret-brief", "secret-brief")
    assert "secret-brief" not in f"{event!r} {held!r} {logs}"
    rename = "ALTER TABLE preference_events RENAME COLUMN {} TO {}"
    with hands.engine.begin() as connection:
        connection.exec_driver_sql(rename.format("value", "another"))
    try:
        with pytest.raises(Transient) as caught:
            hands.log.record(READER_A, KEY, "secret-brief", "said")
    finally:
        with hands.engine.begin() as connection:
            connection.exec_driver_sql(rename.format("another", "value"))
    assert "secret-brief" not in f"{caught.value!r} {caught.value.__cause__!r}"
