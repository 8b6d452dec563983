"""The scoped store: scopes, versions, reads and its own forget."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.memory import MemoryStore, open_engine
from orchestrator import Gate, GateRefused, InvalidRequest, Keyring, Refusal, Refused, Scope, Transient

A = Scope(tenant="tenant-a", user="user-1", project="agent-research")
B = Scope(tenant="tenant-a", user="user-1", project="project-B")


class At:
    def now(self) -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def store(file: Path) -> Iterator[MemoryStore]:
    engine = open_engine(f"sqlite:///{file}")
    yield MemoryStore(engine, Gate(Keyring.create()), At())
    engine.dispose()


def tell(store: MemoryStore, scope: Scope, key: str, value: str, source: str = "turn-1", expires: float = 1e12) -> int:
    if not store.knows_source(scope, source):
        store.register_source(scope, source)
    return store.put(scope, key, value, source, expires)


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def values(store: MemoryStore, scope: Scope, now: float = 0) -> list[str]:
    return [fact.value for fact in store.current(scope, now)]


@pytest.mark.req("R1")
def test_two_projects_of_one_user_stay_apart(store: MemoryStore) -> None:
    tell(store, A, "summary", "Chinese summaries", "turn-1")
    tell(store, B, "summary", "English", "turn-2")
    assert values(store, B) == ["English"]
    assert values(store, A) == ["Chinese summaries"]


@pytest.mark.req("R2")
def test_the_scope_text_is_a_compact_array() -> None:
    assert A.canonical() == '["tenant-a","user-1","agent-research"]'
    assert "报告" in Scope(tenant="t", user="u", project="报告").canonical()


@pytest.mark.req("R3")
def test_scopes_that_join_to_one_text_share_no_rows(store: MemoryStore) -> None:
    one, other = Scope(tenant="a:b", user="c", project="d"), Scope(tenant="a", user="b:c", project="d")
    tell(store, one, "language", "en")
    assert values(store, other) == []
    assert one.canonical() != other.canonical()


@pytest.mark.req("R4")
def test_another_tenants_same_text_is_not_read(store: MemoryStore) -> None:
    foreign = Scope(tenant="tenant-b", user="user-1", project="agent-research")
    tell(store, A, "language", "zh-CN")
    tell(store, foreign, "language", "zh-CN")
    assert [(f.key, f.value) for f in store.current(A, 0)] == [("language", "zh-CN")]
    assert store.current(A, 0)[0].id != store.current(foreign, 0)[0].id


@pytest.mark.req("R8")
def test_a_project_does_not_inherit_from_one_with_the_same_prefix(store: MemoryStore) -> None:
    comet = Scope(tenant="tenant-a", user="user-1", project="Comet")
    tell(store, comet, "style", "detailed@20")
    assert values(store, comet) == ["detailed@20"]
    assert values(store, Scope(tenant="tenant-a", user="user-1", project="Comet-2")) == []
    assert values(store, Scope(tenant="tenant-a", user="user-1")) == []


@pytest.mark.req("R9")
def test_a_second_put_keeps_both_rows_and_one_active(store: MemoryStore, file: Path) -> None:
    assert (tell(store, A, "language", "en"), tell(store, A, "language", "zh-CN")) == (1, 2)
    assert rows(file, "SELECT version, active FROM facts ORDER BY version") == [(1, 0), (2, 1)]
    assert len(rows(file, "SELECT DISTINCT fact_id FROM facts")) == 1


@pytest.mark.req("R10")
def test_versions_are_not_reused_after_forget(store: MemoryStore) -> None:
    tell(store, A, "language", "en")
    tell(store, A, "language", "zh-CN")
    store.forget(A, "language")
    assert tell(store, A, "language", "de") == 3


@pytest.mark.req("R11")
def test_a_put_raises_its_own_scopes_revision(store: MemoryStore) -> None:
    assert store.revision(A) == 0
    tell(store, A, "language", "en")
    assert store.revision(A) == 1
    tell(store, A, "language", "zh-CN")
    assert (store.revision(A), store.revision(B)) == (2, 0)


@pytest.mark.req("R12")
def test_a_fault_after_deactivation_rolls_back(store: MemoryStore, file: Path) -> None:
    tell(store, A, "language", "en")
    rows(file, "CREATE TRIGGER fault BEFORE INSERT ON facts BEGIN SELECT RAISE(ABORT, 'fault'); END")
    with pytest.raises(Transient) as caught:
        tell(store, A, "language", "zh-CN")
    assert "zh-CN" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert rows(file, "SELECT version, active FROM facts") == [(1, 1)]
    assert store.revision(A) == 1


@pytest.mark.req("R13")
def test_the_database_refuses_a_second_active_row(store: MemoryStore, file: Path) -> None:
    tell(store, A, "language", "en")
    copy = "SELECT tenant, user_id, project, key, 9, fact_id, value, source, confirmed, expires, 1, state FROM facts"
    with pytest.raises(sqlite3.IntegrityError):
        rows(file, f"INSERT INTO facts {copy}")


@pytest.mark.req("R14")
@pytest.mark.parametrize(("key", "source"), [("language", ""), ("", "turn-1"), ("language", " ")])
def test_an_empty_key_or_source_is_refused(store: MemoryStore, file: Path, key: str, source: str) -> None:
    tell(store, A, "language", "en")
    before = rows(file, "SELECT * FROM facts")
    with pytest.raises(ValueError, match="must be a non-empty string"):
        store.put(A, key, "x", source, 1e12)
    assert rows(file, "SELECT * FROM facts") == before
    assert store.revision(A) == 1


def test_a_value_has_at_most_2000_characters(store: MemoryStore) -> None:
    assert tell(store, A, "note", "é" * 2000) == 1
    for wrong in ("é" * 2001, "  ", "\ud800"):
        with pytest.raises(InvalidRequest) as caught:
            tell(store, A, "note", wrong)
        assert wrong not in str(caught.value)


@pytest.mark.req("R15")
def test_current_gives_what_holds_by_key(store: MemoryStore) -> None:
    tell(store, A, "theme", "dark")
    tell(store, A, "language", "zh-CN")
    tell(store, A, "old", "expired", expires=100)
    store.put(A, "guess", "unsure", "turn-1", 1e12, confirmed=False)
    assert [fact.key for fact in store.current(A, 100)] == ["language", "theme"]


def test_an_unconfirmed_put_makes_a_confirmed_fact_vanish(store: MemoryStore) -> None:
    tell(store, A, "language", "zh-CN")
    assert values(store, A) == ["zh-CN"]
    store.put(A, "language", "en", "turn-1", 1e12, confirmed=False)
    assert values(store, A) == []


@pytest.mark.req("R16")
def test_a_fact_that_expires_now_is_expired(store: MemoryStore) -> None:
    tell(store, A, "language", "zh-CN", expires=100)
    assert values(store, A, 99.999) == ["zh-CN"]
    assert values(store, A, 100) == []
    assert store.revision(A) == 1


@pytest.mark.req("R27")
@pytest.mark.req("R28")
@pytest.mark.req("R29")
@pytest.mark.req("R30")
def test_forget_revokes_one_key_and_claims_no_more(store: MemoryStore, file: Path) -> None:
    tell(store, B, "language", "fr", "turn-9")
    tell(store, A, "theme", "dark")  # one revision: the example's two versions make 2 -> 3 of another scope
    tell(store, A, "language", "en")
    tell(store, A, "language", "zh-CN")
    done = store.forget(A, "language")
    assert (done.outcome, done.versions, done.revision) == ("revoked", 2, 4)
    assert done.outstanding == ("vectors", "drafts", "caches", "backups")
    blanked = "SELECT version, value, active, source FROM facts WHERE key = 'language' AND project = 'agent-research'"
    assert rows(file, blanked) == [(1, "[deleted]", 0, "turn-1"), (2, "[deleted]", 0, "turn-1")]
    assert values(store, A) == ["dark"]
    assert values(store, B) == ["fr"]
    again = store.forget(A, "language")
    assert (again.outcome, again.versions, again.revision) == ("nothing_found", 0, 4)


@pytest.mark.req("R27")
def test_forget_raises_the_revision_from_two_to_three(store: MemoryStore) -> None:
    tell(store, A, "language", "en")
    tell(store, A, "language", "zh-CN")
    assert store.revision(A) == 2
    assert store.forget(A, "language").revision == 3
    assert store.forget(A, "language").revision == 3


def test_registering_a_source_again_changes_nothing(store: MemoryStore) -> None:
    assert store.register_source(A, "turn-6") == 1
    assert store.register_source(A, "summary-9", kind="model", derived_from=["turn-6"]) == 2
    assert store.register_source(A, "summary-9", kind="model", derived_from=["turn-6"]) == 2
    assert store.register_source(Scope(tenant="tenant-b", user="u"), "turn-6") == 1


def test_a_source_that_is_anothers_or_other_is_refused_in_the_same_words(store: MemoryStore) -> None:
    store.register_source(A, "turn-6")
    answers = set()
    for scope, kind in ((Scope(tenant="tenant-a", user="user-2"), "user_message"), (A, "document")):
        with pytest.raises(Refused) as caught:
            store.register_source(scope, "turn-6", kind=kind)
        answers.add(str(caught.value))
    assert len(answers) == 1
    assert "user" not in answers.pop()


def test_an_unknown_ancestor_or_source_is_refused(store: MemoryStore) -> None:
    with pytest.raises(GateRefused) as caught:
        store.register_source(A, "summary-9", kind="model", derived_from=["turn-6"])
    assert caught.value.refusal is Refusal.UNKNOWN_SOURCE
    store.register_source(Scope(tenant="tenant-a", user="user-2"), "theirs")
    for source in ("nobodys", "theirs"):
        with pytest.raises(GateRefused):
            store.put(A, "language", "en", source, 1e12)
    assert store.refused[Refusal.UNKNOWN_SOURCE] == 3
    with pytest.raises(InvalidRequest, match="kind must be one of"):
        store.register_source(A, "x", kind="rumour")
    with pytest.raises(InvalidRequest, match="itself"):
        store.register_source(A, "x", derived_from=["x"])
