"""A replacement that names the version which it replaces, on each database: it holds, or it changes nothing."""

from __future__ import annotations

import pytest

from adapters.memory import VersionConflict
from adapters.memory.versions import KeyState
from orchestrator import GateRefused, InvalidRequest, Refusal, Refused, SelectorKind
from tests.integration.candidates_harness import TENANT_B, USER_2, A, Place, place, rules, shared_url, url

__all__ = ["place", "rules", "shared_url", "url"]


def replace(place: Place, expected: int, value: str = "zh-CN", source: str = "user-message-42") -> int:
    return place.store.replace(A, "language", value, place.hear(A, source), expected_version=expected)


def conflict(place: Place, expected: int, source: str = "user-message-43") -> tuple[int, KeyState]:
    """Fail to replace, and see that nothing changed."""
    place.hear(A, source)
    before = everything(place)
    with pytest.raises(VersionConflict) as caught:
        replace(place, expected, "de", source)
    assert everything(place) == before
    error = caught.value
    assert isinstance(error, Refused)
    assert error.facts == {"version": error.version, "state": error.state}
    for secret in ("zh-CN", "de", "language", "user-1"):
        assert secret not in f"{error}{error.facts}".split()
    return error.version, error.state


def everything(place: Place) -> list[object]:
    facts = place.rows("SELECT * FROM facts ORDER BY tenant, user_id, project, key, version")
    return [facts, place.rows("SELECT * FROM fact_revisions"), place.rows("SELECT * FROM confirmations")]


@pytest.mark.req("R18")
def test_version_that_was_read_is_replaced(place: Place) -> None:
    place.tell(A, "language", "en", "user-message-41")
    assert replace(place, 1) == 2
    (fact,) = place.store.current(A)
    assert (fact.version, fact.value, fact.source) == (2, "zh-CN", "user-message-42")
    assert place.rows("SELECT version, active, confirmed, state FROM facts ORDER BY version") == [
        (1, 0, 1, "replaced"),
        (2, 1, 1, "live"),
    ]
    assert place.store.revision(A) == 2


@pytest.mark.req("R19")
def test_version_that_was_replaced_meanwhile_is_a_conflict_and_is_not_tried_again(place: Place) -> None:
    place.tell(A, "language", "en")
    place.tell(A, "language", "zh-CN")
    for _ in range(2):
        assert conflict(place, 1) == (2, KeyState.ACTIVE)
    assert (place.values(), place.store.revision(A)) == ({"language": "zh-CN"}, 2)
    assert conflict(place, 3) == (2, KeyState.ACTIVE)


@pytest.mark.req("R21")
def test_0_says_that_there_is_nothing_of_the_key(place: Place) -> None:
    assert replace(place, 0) == 1
    assert conflict(place, 0) == (1, KeyState.ACTIVE)
    place.hear(A, "user-message-44")
    assert place.store.replace(A, "theme", "dark", "user-message-44", expected_version=0) == 1
    assert place.values() == {"language": "zh-CN", "theme": "dark"}


def test_version_of_a_key_that_was_never_there_is_a_conflict(place: Place) -> None:
    assert conflict(place, 1) == (0, KeyState.NONE)


@pytest.mark.req("R22")
def test_version_from_before_a_forget_cannot_write(place: Place) -> None:
    place.tell(A, "language", "en")
    assert place.store.forget(A, "language").versions == 1
    assert conflict(place, 1) == (1, KeyState.REVOKED)
    assert place.values() == {}


@pytest.mark.req("R22")
def test_caller_that_has_not_heard_of_a_forget_cannot_undo_it(place: Place) -> None:
    replace(place, 0)
    place.store.forget(A, "language")
    assert conflict(place, 0) == (1, KeyState.REVOKED)  # as when the first answer was lost
    assert place.tell(A, "language", "de", "user-message-45") == 2
    assert replace(place, 2, "fr", "user-message-46") == 3


@pytest.mark.req("R10")
@pytest.mark.req("R22")
@pytest.mark.case(28)
def test_key_that_was_erased_is_nothing_and_its_numbers_go_on(place: Place) -> None:
    place.tell(A, "language", "en", "user-message-41")
    place.tell(A, "language", "zh-CN", "user-message-41")
    place.forget(SelectorKind.KEY, "language")
    assert place.rows("SELECT count(*) FROM facts") == [(0,)]
    for expected in (1, 2):
        assert conflict(place, expected) == (2, KeyState.ERASED)
    for _ in range(2):  # nor does an old source write, whatever it expects
        with pytest.raises(GateRefused) as caught:
            replace(place, 0, source="user-message-41")
        assert caught.value.refusal is Refusal.KEY_TOMBSTONED
    assert replace(place, 0, "de", "user-message-44") == 3
    assert conflict(place, 2) == (3, KeyState.ACTIVE)
    assert replace(place, 3, "fr", "user-message-45") == 4


def test_version_below_one_that_was_erased_is_not_the_newest(place: Place) -> None:
    place.tell(A, "language", "en", "user-message-41")
    place.tell(A, "language", "zh-CN", "user-message-42")
    place.forget(SelectorKind.SOURCE, "user-message-42")
    assert place.rows("SELECT version, active FROM facts") == [(1, 0)]
    for expected in (1, 2):
        assert conflict(place, expected) == (2, KeyState.ERASED)
    assert replace(place, 0, "de", "user-message-44") == 3


def test_unconfirmed_and_expired_versions_are_in_the_way_though_nobody_sees_them(place: Place) -> None:
    place.hear(A, "user-message-42")
    place.store.put(A, "language", "en", "user-message-42", 100)
    assert place.values() == {}
    assert conflict(place, 0) == (1, KeyState.ACTIVE)
    place.store.replace(A, "language", "zh-CN", "user-message-42", expected_version=1, confirmed=False)
    assert place.values() == {}
    assert conflict(place, 1) == (2, KeyState.ACTIVE)
    assert replace(place, 2) == 3


def test_other_users_and_tenants_have_versions_of_their_own(place: Place) -> None:
    for scope in (USER_2, TENANT_B):
        for value in ("fr", "it"):
            place.tell(scope, "language", value, f"{scope.user}/1")
    assert replace(place, 0) == 1
    assert replace(place, 1, "de", "user-message-43") == 2
    assert place.values(USER_2) == place.values(TENANT_B) == {"language": "it"}
    assert (place.store.revision(USER_2), place.store.revision(TENANT_B)) == (2, 2)


def test_statement_of_a_conflict_is_not_used_up(place: Place) -> None:
    place.tell(A, "language", "zh-CN", "user-message-41")
    place.forget(SelectorKind.KEY, "language")
    place.hear(A, "user-message-43")
    for expected, written in ((1, None), (0, 2)):
        write = {"expected_version": expected, "user_statement": True}
        if written is None:
            with pytest.raises(VersionConflict):
                place.store.replace(A, "language", "zh-CN", "user-message-43", **write)  # type: ignore[arg-type]
        else:
            assert place.store.replace(A, "language", "zh-CN", "user-message-43", **write) == written  # type: ignore[arg-type]


@pytest.mark.parametrize("expected", [-1, True, 1.0, "1", None])
def test_expected_version_that_is_no_version_is_refused(place: Place, expected: object) -> None:
    place.tell(A, "language", "en")
    with pytest.raises(InvalidRequest, match="expected_version must be"):
        replace(place, expected)  # type: ignore[arg-type]
    assert place.store.revision(A) == 1


@pytest.mark.req("R14")
def test_what_put_refuses_is_refused_here_as_well(place: Place) -> None:
    place.tell(A, "language", "en")
    before = everything(place)
    for key, value, source in (("", "x", "s"), ("k", "x", ""), ("k", " ", "s")):
        with pytest.raises(InvalidRequest):
            place.store.replace(A, key, value, source, expected_version=0)
    with pytest.raises(InvalidRequest):
        place.store.replace(A, "k", "x", "user-message-42", expected_version=0, expires=float("nan"))
    place.hear(USER_2, "theirs")
    for source in ("nobodys", "theirs"):
        with pytest.raises(GateRefused):
            place.store.replace(A, "language", "x", source, expected_version=1)
    assert place.store.refused[Refusal.UNKNOWN_SOURCE] == 2
    assert everything(place) == before
