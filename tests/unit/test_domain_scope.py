"""Scopes and selectors: exact, unambiguous, never empty."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.scope import MAX_PART, Scope
from orchestrator.domain.selector import Selector, SelectorKind

PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40).filter(
    lambda s: bool(s.strip())
)
SCOPES = st.builds(Scope, tenant=PARTS, user=PARTS, project=st.none() | PARTS)
UNUSABLE = [None, 7, True, b"bytes", ["a"], "", " ", "\t\n", "\u3000"]


@pytest.mark.req("R2")
def test_the_canonical_scope_is_a_compact_json_array() -> None:
    scope = Scope(tenant="tenant-a", user="user-1", project="agent-research")
    assert scope.canonical() == '["tenant-a","user-1","agent-research"]'


@pytest.mark.req("R2")
def test_the_canonical_scope_leaves_non_ascii_as_it_is() -> None:
    assert Scope(tenant="tenant-a", user="user-1", project="报告").canonical() == '["tenant-a","user-1","报告"]'


@pytest.mark.req("R3")
def test_scopes_that_a_colon_would_join_to_one_stay_two() -> None:
    one = Scope(tenant="a:b", user="c", project="d")
    other = Scope(tenant="a", user="b:c", project="d")
    joined = [":".join((s.tenant, s.user, s.project or "")) for s in (one, other)]
    assert joined == ["a:b:c:d", "a:b:c:d"]
    assert one != other
    assert one.canonical() != other.canonical()


@pytest.mark.req("R3")
@given(SCOPES, SCOPES)
def test_only_equal_scopes_share_a_canonical_form(one: Scope, other: Scope) -> None:
    assert (one.canonical() == other.canonical()) is (one == other)


@pytest.mark.req("R2")
@given(SCOPES)
def test_the_canonical_scope_reads_back_as_its_parts(scope: Scope) -> None:
    assert json.loads(scope.canonical()) == [scope.tenant, scope.user, scope.project]


@pytest.mark.req("R8")
def test_a_project_is_not_the_project_whose_name_it_begins_with() -> None:
    comet = Scope(tenant="t", user="u", project="Comet")
    assert comet != Scope(tenant="t", user="u", project="Comet-2")
    assert comet != Scope(tenant="t", user="u", project="comet")


def test_a_scope_over_every_project_ends_in_null_and_is_not_a_project_of_that_name() -> None:
    every = Scope(tenant="t", user="u")
    assert every.canonical() == '["t","u",null]'
    assert every.canonical() != Scope(tenant="t", user="u", project="null").canonical()


@pytest.mark.parametrize("name", ["tenant", "user"])
@pytest.mark.parametrize("value", UNUSABLE)
def test_an_empty_or_non_string_part_is_refused(name: str, value: object) -> None:
    parts = {"tenant": "t", "user": "u", name: cast("str", value)}
    with pytest.raises(InvalidRequest, match=f"{name} must be a non-empty string") as caught:
        Scope(**parts)
    assert caught.value.facts == {"field": name}


@pytest.mark.parametrize("value", [value for value in UNUSABLE if value is not None])
def test_an_empty_or_non_string_project_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="project must be a non-empty string"):
        Scope(tenant="t", user="u", project=cast("str", value))


def test_a_part_may_have_512_characters_and_not_one_more() -> None:
    assert Scope(tenant="报" * MAX_PART, user="u").tenant == "报" * 512
    with pytest.raises(InvalidRequest, match="at most 512 characters"):
        Scope(tenant="t" * (MAX_PART + 1), user="u")


def test_a_part_that_is_not_unicode_is_refused_without_being_repeated() -> None:
    with pytest.raises(InvalidRequest, match="user must be valid Unicode") as caught:
        Scope(tenant="t", user="secret-\ud800")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_scope_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Scope(tenant="t", user="u").tenant = "other"  # type: ignore[misc]  # what this shows


WITHOUT = (SelectorKind.SUBJECT, SelectorKind.EXPIRED)
VALUED = [kind for kind in SelectorKind if kind not in WITHOUT]


@pytest.mark.parametrize("kind", VALUED)
def test_a_selector_keeps_its_value(kind: SelectorKind) -> None:
    assert Selector(kind=kind, value="user:1*").value == "user:1*"


@pytest.mark.parametrize("kind", VALUED)
@pytest.mark.parametrize("value", UNUSABLE)
def test_an_empty_selection_is_refused(kind: SelectorKind, value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"{kind.value} must be a non-empty string"):
        Selector(kind=kind, value=cast("str | None", value))


@pytest.mark.parametrize("kind", WITHOUT)
def test_a_selector_of_a_subject_or_of_what_has_expired_takes_no_value(kind: SelectorKind) -> None:
    assert Selector(kind=kind).value is None
    for value in ("", "user-1"):
        with pytest.raises(InvalidRequest, match=f"{kind.value} takes no value"):
            Selector(kind=kind, value=value)


def test_nul_is_refused_because_one_of_the_databases_cannot_store_it() -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        Scope(tenant="tenant-a", user="an\0na")
