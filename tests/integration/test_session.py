"""Whose data a session reaches: its own person's, in the projects of which that person is a member now."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.memory import Constraint, NoAccess, Reach, Session, SessionMemory
from adapters.memory.candidates import CandidateState, CandidateUnknown
from orchestrator import InvalidRequest, Refused, Scope
from tests.integration.candidates_harness import EXTRACTOR, USER_2, A, Place, place, rules, shared_url, url

__all__ = ["place", "rules", "shared_url", "url"]

PROJECT = "agent-research"


@dataclass
class Members:
    """Who belongs to which project, as the application knows it."""

    projects: set[str] = field(default_factory=lambda: {PROJECT})

    def __call__(self, project: str) -> bool:
        return project in self.projects


@pytest.fixture
def members() -> Members:
    return Members()


@pytest.fixture
def session(members: Members) -> Session:
    return Session(tenant="tenant-a", user="user-1", is_member=members)


@pytest.fixture
def memory(place: Place, session: Session) -> SessionMemory:
    return SessionMemory(place.adapter, session, {"always": lambda _current, _candidate: True})


def calls(memory: SessionMemory, candidate: str) -> dict[str, Callable[[], Any]]:
    """Give a call of every method, in the project."""
    return {
        "register_source": lambda: memory.register_source("turn-9", project=PROJECT),
        "put": lambda: memory.put("tone", "dry", "turn-1", project=PROJECT),
        "replace": lambda: memory.replace("theme", "dark", "turn-1", expected_version=0, project=PROJECT),
        "current": lambda: memory.current(project=PROJECT),
        "revision": lambda: memory.revision(project=PROJECT),
        "forget": lambda: memory.forget("tone", project=PROJECT),
        "take": lambda: memory.take("answer", "short", "turn-1", reach=Reach.ANSWER, project=PROJECT),
        "propose": lambda: memory.propose("language", "de", "turn-1", proposed_by=EXTRACTOR, project=PROJECT),
        "pending": lambda: memory.pending(project=PROJECT),
        "accept": lambda: memory.accept(candidate, source="turn-1", expected_version=0, project=PROJECT),
        "reject": lambda: memory.reject(candidate, project=PROJECT),
        "prefer": lambda: memory.prefer("detail", "brief", "turn-1", project=PROJECT),
        "resolve": lambda: memory.resolve("detail", project=PROJECT),
    }


def everything(place: Place) -> list[object]:
    tables = ("facts", "fact_candidates", "preference_events", "preferences", "accepted_sources", "source_reaches")
    return [place.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables]  # noqa: S608 - ours


@pytest.mark.req("R17")
def test_face_cannot_write_an_unconfirmed_version_that_hides_a_confirmed_one(
    place: Place, memory: SessionMemory
) -> None:
    memory.register_source("turn-1", project=PROJECT)
    memory.put("language", "zh-CN", "turn-1", user_statement=True, project=PROJECT)
    memory.propose("language", "en", "turn-1", proposed_by=EXTRACTOR, project=PROJECT)
    assert [fact.value for fact in memory.current(project=PROJECT)] == ["zh-CN"]
    for name, method in methods():
        assert "confirmed" not in inspect.signature(method).parameters, name
    assert place.rows("SELECT count(*) FROM facts WHERE confirmed = 0") == [(0,)]


@pytest.mark.req("R5")
def test_user_id_of_a_request_gives_no_access(place: Place, session: Session) -> None:
    place.tell(USER_2, "language", "fr", "theirs")
    asked: list[str] = []

    def is_member(project: str) -> bool:
        asked.append(project)
        return True

    watched = replace(session, is_member=is_member)
    for project in (PROJECT, None):
        with pytest.raises(NoAccess) as caught:
            watched.scope(project, user="user-2")
        assert (str(caught.value), caught.value.facts) == ("This session has no access to that.", {})
        assert isinstance(caught.value, Refused)
    assert asked == [], "nor is anybody's membership told by the way"
    assert session.scope(PROJECT, user="user-1") == session.scope(PROJECT) == A
    assert session.scope() == replace(A, project=None)


@pytest.mark.req("R5")
def test_face_of_a_session_takes_no_identity_and_reads_nobody_elses_rows(place: Place, memory: SessionMemory) -> None:
    place.tell(USER_2, "language", "fr", "theirs")
    theirs = place.propose(USER_2, key="tone", value="dry")
    names = {"user", "tenant", "scope", "session"}
    assert names & {*inspect.signature(Session.scope).parameters} == {"user"}, "the one place that compares it"
    for name, method in methods():
        assert not names & inspect.signature(method).parameters.keys(), name
    assert memory.current(project=PROJECT) == []
    assert list(memory.pending(project=PROJECT)) == []
    with pytest.raises(CandidateUnknown):
        memory.reject(theirs.id, project=PROJECT)
    assert place.values(USER_2) == {"language": "fr"}
    assert [each.id for each in place.candidates.pending(USER_2)] == [theirs.id]


def test_project_of_which_the_person_is_no_member_is_refused_in_the_same_words(session: Session) -> None:
    told = set()
    for project, user in (("project-B", None), ("no-such-project", None), (PROJECT, "user-2"), ("project-B", "user-2")):
        with pytest.raises(NoAccess) as caught:
            session.scope(project, user=user)
        told.add((str(caught.value), str(caught.value.facts)))
    assert len(told) == 1


@pytest.mark.parametrize("answer", [1, "yes", object(), None, 0])
def test_only_true_is_a_yes(answer: object) -> None:
    session = Session(tenant="tenant-a", user="user-1", is_member=lambda _project: answer)  # type: ignore[arg-type,return-value]
    with pytest.raises(NoAccess):
        session.scope(PROJECT)


def test_membership_that_cannot_be_told_gives_no_scope(session: Session) -> None:
    def down(_project: str) -> bool:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        replace(session, is_member=down).scope(PROJECT)


@pytest.mark.parametrize("project", ["", " ", "x" * 513])
def test_name_that_is_none_is_refused_before_anybody_is_asked(project: str) -> None:
    def never(_project: str) -> bool:
        raise AssertionError

    with pytest.raises(InvalidRequest):
        Session(tenant="tenant-a", user="user-1", is_member=never).scope(project)


@pytest.mark.req("R7")
@pytest.mark.parametrize("name", sorted(calls(None, "")))  # type: ignore[arg-type]
def test_who_has_left_a_project_reads_writes_and_decides_nothing_in_it(
    place: Place, memory: SessionMemory, members: Members, name: str
) -> None:
    memory.register_source("turn-1", project=PROJECT)
    memory.put("tone", "dry", "turn-1", project=PROJECT)
    waiting = memory.propose("language", "en", "turn-1", proposed_by=EXTRACTOR, project=PROJECT)
    call = calls(memory, waiting.id)[name]
    members.projects.clear()
    before = everything(place)
    with pytest.raises(NoAccess):
        call()
    assert everything(place) == before
    assert place.candidates.inspect(A, waiting.id).state is CandidateState.PENDING
    members.projects.add(PROJECT)
    call()


def methods() -> list[tuple[str, Any]]:
    return [(n, m) for n, m in inspect.getmembers(SessionMemory, inspect.isfunction) if not n.startswith("_")]


def test_every_method_of_the_face_is_tried() -> None:
    assert {name for name, _ in methods()} == calls(None, "").keys()  # type: ignore[arg-type]


def test_face_does_what_the_libraries_do_in_the_scope_of_the_session(place: Place, memory: SessionMemory) -> None:
    for project, value in ((PROJECT, "en"), (None, "zh-CN")):
        source = f"turn-{project}"
        assert memory.register_source(source, project=project) > 0
        assert memory.put("language", "draft", source, 2e9, user_statement=True, project=project) == 1
        assert memory.replace("language", value, source, expected_version=1, expires=3e9, project=project) == 2
        scope = Scope(tenant="tenant-a", user="user-1", project=project)
        (fact,) = place.store.current(scope)
        assert (fact.value, fact.expires) == (value, 3e9)
        assert memory.current(project=project) == [fact]
        candidate = memory.propose("tone", value, source, proposed_by=EXTRACTOR, expires=2e9, project=project)
        assert memory.pending(limit=1, project=project) == [candidate]
        assert memory.pending(after=candidate.id, project=project) == []
        assert memory.accept(candidate.id, rule="always", expected_version=0, project=project) == 1
        other = memory.propose("theme", value, source, proposed_by=EXTRACTOR, project=project)
        memory.reject(other.id, project=project)
        assert place.values(scope) == {"language": value, "tone": value}
        assert memory.revision(project=project) == place.store.revision_for_answers(scope)
        assert memory.prefer("detail", value, source, user_statement=True, project=project).value == value
        resolved = memory.resolve("detail", project=project)
        assert (resolved.value, resolved.resolved_scope) == (value, f"project:{project}" if project else "global")
        assert memory.forget("tone", project=project).versions >= 1
    assert memory.resolve("detail", 0, project=PROJECT).value is None
    taken = memory.take("answer", "short", f"turn-{PROJECT}", reach=Reach.ANSWER, project=PROJECT)
    assert taken == Constraint(key="answer", value="short", reach=Reach.ANSWER)


def test_another_session_sees_nothing_of_it(place: Place, memory: SessionMemory, session: Session) -> None:
    memory.register_source("turn-1", project=PROJECT)
    memory.put("language", "en", "turn-1", project=PROJECT)
    memory.propose("tone", "dry", "turn-1", proposed_by=EXTRACTOR, project=PROJECT)
    assert len(memory.current(project=PROJECT)) == len(memory.pending(project=PROJECT)) == 1
    assert memory.revision(project=PROJECT) > 0
    for other in (replace(session, user="user-2"), replace(session, tenant="tenant-b")):
        face = SessionMemory(place.adapter, other)
        assert face.current(project=PROJECT) == []
        assert list(face.pending(project=PROJECT)) == []
        assert face.revision(project=PROJECT) == 0


def test_rules_are_those_of_the_application_alone(place: Place, session: Session) -> None:
    face = SessionMemory(place.adapter, session)
    face.register_source("turn-1", project=PROJECT)
    candidate = face.propose("tone", "dry", "turn-1", proposed_by=EXTRACTOR, project=PROJECT)
    with pytest.raises(InvalidRequest, match="rule must be"):
        face.accept(candidate.id, rule="always", expected_version=0, project=PROJECT)
