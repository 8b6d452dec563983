"""The memory adapter: revoke, find, erase and verify, and what stays of the neighbours."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
import structlog
from structlog.testing import capture_logs

from adapters.memory import MemoryAdapter, MemoryStore
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    Gate,
    GateRefused,
    InvalidRequest,
    Keyring,
    Permanent,
    Refusal,
    Revocation,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    SourceAdapter,
    StoreLocked,
    StoreUnreachable,
    Target,
    TombstoneKind,
    Transient,
)

A = Scope(tenant="tenant-a", user="reader-A", project="trip-planning")
OTHER_PROJECT = Scope(tenant="tenant-a", user="reader-A", project="project-B")
ALL = Scope(tenant="tenant-a", user="reader-A")
NEIGHBOUR = Scope(tenant="tenant-a", user="reader-B", project="trip-planning")
FOREIGN = Scope(tenant="tenant-b", user="reader-A", project="trip-planning")
TURN_6, PASSPORT = "trip-planning/turn-6", "My passport number is P1234567"
BY_KEY = Selector(kind=SelectorKind.KEY, value="passport")
BY_SOURCE = Selector(kind=SelectorKind.SOURCE, value=TURN_6)
SUBJECT = Selector(kind=SelectorKind.SUBJECT)


@dataclass
class Hands:
    at: datetime = datetime(2026, 11, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@dataclass
class World:
    file: Path
    adapter: MemoryAdapter
    clock: Hands
    context: AdapterContext

    @property
    def store(self) -> MemoryStore:
        return self.adapter.store

    def tell(self, scope: Scope, key: str, value: str, source: str, *, user_statement: bool = False) -> int:
        if not self.store.knows_source(scope, source):
            self.store.register_source(scope, source)
        return self.store.put(scope, key, value, source, user_statement=user_statement)

    def order(self, selector: Selector = BY_KEY, scope: Scope = A, *, job: UUID | None = None) -> EraseOrder:
        deadline = self.clock.now() + timedelta(seconds=20)
        return EraseOrder(job=job or uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)

    def revoke(self, order: EraseOrder) -> Revocation:
        return self.adapter.revoke([order])[0]

    def run(self, order: EraseOrder) -> tuple[Erased, Seen]:
        targets = self.revoke(order).targets
        erase = replace(order, targets=targets)
        return self.adapter.erase([erase])[0], self.adapter.verify([replace(erase, known=targets)])[0]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(self.file)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def refused(self, scope: Scope, key: str, value: str, source: str, *, user_statement: bool = False) -> Refusal:
        with pytest.raises(GateRefused) as caught:
            self.tell(scope, key, value, source, user_statement=user_statement)
        assert value not in str(caught.value)
        return caught.value.refusal


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = Hands()
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path)
    adapter = MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    made = World(tmp_path / "m.db", adapter, clock, context)
    for scope in (A, NEIGHBOUR, FOREIGN):
        source = TURN_6 if scope is not NEIGHBOUR else "reader-B/turn-6"
        made.tell(scope, "passport", PASSPORT, source)
        made.tell(scope, "seat", "aisle seat", source)
    yield made
    adapter.close()


def kinds(answer: Revocation) -> Sequence[str]:
    return sorted(t.kind.value for t in answer.tombstones)


def counted(world: World) -> tuple[int, int, int, int]:
    tables = ("source_revocations", "revocation_targets", "source_tombstones")
    counts = [cast("int", world.rows(f"SELECT count(*) FROM {name}")[0][0]) for name in tables]  # noqa: S608
    return counts[0], counts[1], counts[2], world.store.revision(A)


@pytest.mark.req("R123")
def test_a_fault_before_the_commit_leaves_nothing(world: World) -> None:
    order, engine = world.order(), world.adapter._engine

    def fault(_connection: sa.Connection) -> None:
        raise ConnectionResetError

    sa.event.listen(engine, "commit", fault)
    with pytest.raises(ConnectionResetError):
        world.revoke(order)
    sa.event.remove(engine, "commit", fault)
    assert counted(world) == (0, 0, 0, 2)
    assert len(world.store.current(A)) == 2
    done = world.revoke(order)
    assert counted(world) == (1, 1, len(done.tombstones), 3)
    assert [f.key for f in world.store.current(A)] == ["seat"]


@pytest.mark.req("R123")
def test_a_repeat_of_a_job_gives_the_same_answer_and_changes_nothing(world: World) -> None:
    world.tell(A, "passport", "P7654321 since May", "turn-7")
    order = world.order()
    first = world.revoke(order)
    assert [t.version for t in first.targets] == [1, 2]
    world.tell(A, "passport", "lost it, ask me again", "turn-31", user_statement=True)
    assert world.revoke(order) == first
    assert [f.value for f in world.store.current(A)] == ["lost it, ask me again", "aisle seat"]
    other = world.revoke(world.order())
    assert len(other.targets) == 3, "what another job has revoked is named too"


def test_a_second_job_on_blank_data_raises_nothing_and_marks_no_text(world: World) -> None:
    first, second = world.revoke(world.order()), world.revoke(world.order())
    assert second.targets == first.targets
    assert second.revision == first.revision == 3
    assert kinds(second) == ["key"]


@pytest.mark.parametrize(
    ("selector", "scope", "marks", "left"),
    [
        (BY_KEY, A, {"key", "text", "source_token", "fact_source"}, ["seat"]),
        (BY_SOURCE, A, {"source", "text"}, []),
        (SUBJECT, A, {"subject", "source"}, []),
    ],
)
def test_each_request_takes_its_own_and_leaves_the_neighbours(
    world: World, selector: Selector, scope: Scope, marks: set[str], left: list[str]
) -> None:
    others = "SELECT * FROM facts WHERE user_id <> 'reader-A' OR tenant <> 'tenant-a' ORDER BY tenant, user_id, key"
    before = world.rows(others)
    order = world.order(selector, scope)
    preview = world.adapter.find([order])[0]
    answer = world.revoke(order)
    assert preview.targets == answer.targets == world.adapter.find([order])[0].targets
    assert set(kinds(answer)) == marks
    assert [f.key for f in world.store.current(A)] == left
    targets = replace(order, targets=answer.targets)
    assert world.adapter.verify([targets])[0].remaining == len(answer.targets), "blank is not erased"
    assert world.adapter.erase([targets])[0] == Erased(erased=len(answer.targets))
    assert world.adapter.verify([targets])[0].remaining == 0
    assert world.adapter.erase([targets])[0] == Erased(already_absent=len(answer.targets))
    assert world.rows(others) == before


def test_a_memory_is_named_by_its_handle_within_its_owner(world: World) -> None:
    handle = world.store.current(A)[0].id
    selector = Selector(kind=SelectorKind.MEMORY, value=handle)
    for scope in (NEIGHBOUR, FOREIGN, OTHER_PROJECT):
        answer = world.revoke(world.order(selector, scope))
        assert (answer.targets, answer.tombstones) == ((), ())
    assert world.revoke(world.order(selector)).targets == (Target(kind="fact", id=handle, version=1),)
    assert world.refused(A, "passport", "something else", TURN_6) is Refusal.KEY_TOMBSTONED


def test_without_a_project_a_key_goes_in_every_project(world: World) -> None:
    world.tell(OTHER_PROJECT, "passport", PASSPORT, "b/turn-1")
    world.tell(ALL, "passport", PASSPORT, "general/turn-1")
    empty = Scope(tenant="tenant-a", user="reader-A", project="empty")
    world.store.register_source(empty, "empty/turn-1")
    answer = world.revoke(world.order(BY_KEY, ALL))
    assert len(answer.targets) == 3
    assert {world.store.revision(s) for s in (A, OTHER_PROJECT, ALL)} == {answer.revision}
    assert world.refused(empty, "passport", "any", "empty/turn-1") is Refusal.KEY_TOMBSTONED


def test_a_source_reaches_derived_facts_in_other_projects_but_no_other_user(world: World) -> None:
    world.store.register_source(OTHER_PROJECT, "summary-9", kind="model", derived_from=[TURN_6])
    world.tell(OTHER_PROJECT, "trip", "travels in May", "summary-9")
    world.store.register_source(NEIGHBOUR, "summary-10", kind="model", derived_from=[TURN_6])
    world.tell(NEIGHBOUR, "trip", "travels in May", "summary-10")
    answer = world.revoke(world.order(BY_SOURCE))
    assert len(answer.targets) == 3
    assert world.store.current(OTHER_PROJECT) == []
    assert [f.key for f in world.store.current(NEIGHBOUR)] == ["passport", "seat", "trip"]


def test_nobody_blocks_another_users_source(world: World) -> None:
    answer = world.revoke(world.order(BY_SOURCE, NEIGHBOUR))
    assert (answer.targets, answer.tombstones) == ((), ())
    assert world.tell(A, "seat", "window seat", TURN_6) == 2


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


def test_a_fresh_statement_is_no_remaining_copy(world: World) -> None:
    order = world.order()
    erased, seen = world.run(order)
    assert (erased.erased, seen.remaining) == (1, 0)
    assert world.tell(A, "passport", "renewed, ask again", "turn-31", user_statement=True) == 2, "after version 1"
    assert world.adapter.verify([order])[0].remaining == 0
    assert world.adapter.find([order])[0].targets == ()
    late = (
        "INSERT INTO facts SELECT tenant, user_id, project, key, 99, 'late', 'x', 'trip-planning/turn-6', 1, 9e12, 0,"
    )
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute(late + " 'live' FROM facts WHERE version = 2 AND key = 'passport' AND user_id = 'reader-A'")
    connection.close()
    assert world.adapter.verify([order])[0].remaining == 1, "a copy from an old source is seen"


@pytest.mark.req("R10")
def test_versions_are_not_reused_after_erasure(world: World) -> None:
    world.tell(A, "passport", "second P7654321", "turn-7")
    world.run(world.order())
    assert world.tell(A, "passport", "none now", "turn-31", user_statement=True) == 3


def test_erase_takes_exact_handles_of_its_tenant(world: World) -> None:
    handle = world.store.current(A)[0].id
    target = (Target(kind="fact", id=handle, version=1), Target(kind="fact", id="unknown", version=1))
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute("UPDATE facts SET fact_id = ? WHERE tenant = 'tenant-b' AND key = 'passport'", (handle,))
    connection.close()
    first, second = world.order(), world.order()
    answers = world.adapter.erase([replace(first, targets=target), replace(second, targets=target), world.order()])
    assert answers == [Erased(erased=1, already_absent=1), Erased(already_absent=2), Erased()]
    assert world.rows("SELECT tenant FROM facts WHERE fact_id IS NOT NULL AND key = 'passport' ORDER BY tenant") == [
        ("tenant-a",),
        ("tenant-b",),
    ]
    assert [f.key for f in world.store.current(FOREIGN)] == ["passport", "seat"]


def test_a_thousand_and_one_targets_come_in_two_pages(world: World) -> None:
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1009) INSERT INTO facts"
        " SELECT tenant, user_id, project, key, i, fact_id, 'old', source, 1, expires, 0, 'replaced' FROM facts, n"
        " WHERE key = 'passport' AND user_id = 'reader-A' AND tenant = 'tenant-a' AND version = 1"
    )
    connection.close()
    order = world.order()
    found = world.adapter.find([order])[0]
    rest = world.adapter.find([replace(order, cursor=found.cursor)])[0]
    first = world.revoke(order)
    second = world.revoke(replace(order, cursor=first.cursor))
    assert [len(x.targets) for x in (found, rest, first, second)] == [1000, 1, 1000, 1]
    assert (first.cursor, second.cursor, rest.cursor) == ("1000", None, None)
    assert first.tombstones
    assert not second.tombstones
    everything = first.targets + second.targets
    assert world.adapter.erase([replace(order, targets=everything)])[0].erased == 1001
    for cursor in ("x", "²", "a@b"):
        with pytest.raises(InvalidRequest):
            world.revoke(replace(order, cursor=cursor))
        with pytest.raises(InvalidRequest):
            world.adapter.find([replace(order, cursor=cursor)])


def test_nothing_is_done_after_the_deadline(world: World) -> None:
    order = world.order()
    targets = replace(order, targets=world.adapter.find([order])[0].targets)
    world.clock.at = order.deadline
    world.clock.at += timedelta(microseconds=1)
    with pytest.raises(DeadlinePassed):
        world.revoke(order)
    with pytest.raises(DeadlinePassed):
        world.adapter.erase([targets])
    assert counted(world) == (0, 0, 0, 2)
    assert len(world.store.current(A)) == 2


def test_a_held_item_stops_the_revocation(world: World) -> None:
    handle = world.store.current(A)[0].id
    with pytest.raises(Transient, match="hold"):
        world.revoke(replace(world.order(), held=frozenset({handle})))
    assert counted(world) == (0, 0, 0, 2)


def test_a_locked_store_says_so_within_the_deadline(world: World) -> None:
    blocker = sqlite3.connect(world.file, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    order = replace(world.order(), deadline=world.clock.now() + timedelta(milliseconds=50))
    with pytest.raises(StoreLocked):
        world.revoke(order)
    assert len(world.adapter.find([order])[0].targets) == 1, "readers do not wait for a writer"
    blocker.close()


def test_a_store_that_is_not_there_is_unreachable(world: World, tmp_path: Path) -> None:
    adapter = MemoryAdapter(world.context, url=f"sqlite:///{tmp_path}/missing/m.db")
    for call in (adapter.find, adapter.erase, adapter.verify, adapter.revoke):
        with pytest.raises(StoreUnreachable):
            call([world.order()])
    adapter.close()


def test_a_file_that_is_no_database_is_a_permanent_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database at all" * 100)
    adapter = MemoryAdapter(world.context, url=f"sqlite:///{tmp_path}/broken.db")
    with pytest.raises(Permanent):
        adapter.find([world.order()])
    adapter.close()


def test_options_name_what_is_wrong_and_what_is_allowed(world: World) -> None:
    assert isinstance(world.adapter, SourceAdapter)
    with pytest.raises(InvalidRequest, match=r"option path .* \(allowed: url\)") as caught:
        MemoryAdapter(world.context, path="secret-place")
    assert "secret-place" not in str(caught.value)
    for url in ("sqlite://", "sqlite:///:memory:", "postgresql://h/d", "nonsense"):
        with pytest.raises(InvalidRequest, match="SQLite file"):
            MemoryAdapter(world.context, url=url)


def test_log_lines_hold_ids_and_counts(world: World) -> None:
    with capture_logs() as lines:
        world.run(world.order())
    assert [line["event"] for line in lines] == ["source.revoked", "facts.erased"]
    for word in ("P1234567", "passport", "reader-A", TURN_6):
        assert word not in str(lines)


def test_the_tombstone_kinds_of_a_key_cover_the_sources_behind_a_fact(world: World) -> None:
    world.store.register_source(A, "summary-9", kind="model", derived_from=[TURN_6])
    world.tell(A, "document", "Passport X9876543", "summary-9")
    answer = world.revoke(world.order(Selector(kind=SelectorKind.KEY, value="document")))
    assert sum(t.kind is TombstoneKind.FACT_SOURCE for t in answer.tombstones) == 2
    assert world.refused(A, "note", "it is x9876543", TURN_6) is Refusal.TOKEN_TOMBSTONED


@pytest.mark.req("R8")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("Comet", "Comet-2"),
        ("user:1", "user:10"),
        ("User:1", "user:1"),
        ("a%", "ab"),
        ("a_c", "abc"),
        ("a*", "ab"),
        ("it's", "its"),
        ('quo"te', "quote"),
        ("back\\slash", "back\\\\slash"),
        ("new\nline", "new line"),
        ("caf\u00e9", "cafe\u0301"),
        ("\U0001f600", "\U0001f601"),
        ("x" * 512, "x" * 511),
    ],
)
def test_a_job_takes_exactly_its_names(world: World, mine: str, theirs: str) -> None:
    asked = Scope(tenant="tenant-a", user=mine, project=mine)
    others = [
        Scope(tenant="tenant-a", user=mine, project=theirs),
        Scope(tenant="tenant-a", user=theirs, project=mine),
        Scope(tenant=f"tenant-{theirs}"[:512], user=mine, project=mine),
    ]
    for number, scope in enumerate((asked, *others)):
        for key in (mine, theirs):
            world.tell(scope, key, f"text {number}", f"{mine[:500]}{number}")
    answer = world.run(world.order(Selector(kind=SelectorKind.KEY, value=mine), asked))
    assert (answer[0].erased, answer[1].remaining) == (1, 0)
    assert [f.key for f in world.store.current(asked)] == [theirs]
    assert world.run(world.order(SUBJECT, asked))[0].erased == 1
    assert [len(world.store.current(scope)) for scope in others] == [2, 2, 2]
