"""The gate: every row of the tombstone table, blocking and letting pass."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import Tombstone, TombstoneKind
from orchestrator.domain.scope import Scope
from orchestrator.gate.decide import Gate, Origin, Write
from orchestrator.gate.keyring import Keyring

RING = Keyring(current="tk-1", keys={"tk-1": bytes(range(32))})
ROTATED = RING.rotate()
GATE = Gate(RING)
HOME = Scope(tenant="t", user="u", project="p")
CUT_OFF = 10


@dataclass
class Stones:
    """Tombstones of several tenants, kept in memory; notes what it was asked."""

    rows: list[tuple[str, Tombstone]] = field(default_factory=list)
    asked: list[set[str]] = field(default_factory=list)

    def add(self, *stones: Tombstone, tenant: str = "t") -> Stones:
        self.rows += [(tenant, stone) for stone in stones]
        return self

    def key_ids(self, tenant: str) -> Collection[str]:
        return {stone.key_id for owner, stone in self.rows if owner == tenant}

    def matching(self, tenant: str, macs: Collection[str]) -> Iterable[Tombstone]:
        self.asked.append(set(macs))
        return [stone for owner, stone in self.rows if owner == tenant and stone.mac in macs]


def origin(name: str = "m-new", position: int = CUT_OFF + 1, *ancestors: str) -> Origin:
    return Origin(id=name, position=position, ancestors=frozenset(ancestors))


def write(
    text: str = "dark",
    *,
    key: str | None = "theme",
    scope: Scope = HOME,
    source: Origin | None = None,
    confirmed: bool = False,
) -> Write:
    return Write(scope=scope, key=key, text=text, origin=source or origin(), confirmed=confirmed)


def elsewhere(*, tenant: str = "t", user: str = "u", project: str | None = "p") -> Scope:
    return Scope(tenant=tenant, user=user, project=project)


# Nothing forgotten, nothing known.


def test_without_tombstones_a_registered_source_may_write() -> None:
    assert GATE.decide(write(), Stones()) is None
    assert GATE.decide(write(key=None), Stones()) is None


def test_a_source_that_was_never_registered_is_refused_without_any_tombstone() -> None:
    replay = Write(scope=HOME, key="theme", text="dark", origin=None, confirmed=True)
    assert GATE.decide(replay, Stones()) is Refusal.UNKNOWN_SOURCE


# Source.


@pytest.mark.parametrize("position", [1, CUT_OFF, CUT_OFF + 1, 10**9])
def test_a_forgotten_source_is_refused_at_any_position(position: int) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin("m-1", position), confirmed=True), stones) is Refusal.SOURCE_TOMBSTONED


def test_what_was_derived_from_a_forgotten_source_is_refused() -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin("summary", 99, "m-0", "m-1")), stones) is Refusal.SOURCE_TOMBSTONED


@pytest.mark.parametrize("scope", [elsewhere(user="v"), elsewhere(project="q"), elsewhere(project=None)])
def test_a_forgotten_source_is_refused_in_every_scope_of_its_tenant(scope: Scope) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(scope=scope, source=origin("m-1")), stones) is Refusal.SOURCE_TOMBSTONED


@pytest.mark.parametrize("name", ["m-10", "m-", "M-1", "m-2"])
def test_another_source_passes(name: str) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin(name)), stones) is None


def test_a_forgotten_source_is_not_registered_again() -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.source_refused("t", ["m-1"], stones) is Refusal.SOURCE_TOMBSTONED
    assert GATE.source_refused("t", ["summary", "m-1"], stones) is Refusal.SOURCE_TOMBSTONED
    assert GATE.source_refused("t", ["m-2"], stones) is None
    assert GATE.source_refused("other", ["m-1"], stones) is None
    assert GATE.source_refused("t", [], stones) is None


# Subject.


@pytest.mark.parametrize(
    ("position", "refusal"),
    [(CUT_OFF - 1, Refusal.SUBJECT_TOMBSTONED), (CUT_OFF, Refusal.SUBJECT_TOMBSTONED), (CUT_OFF + 1, None)],
)
@pytest.mark.parametrize("forgotten", [elsewhere(project=None), HOME], ids=["user", "project"])
def test_a_forgotten_subject_is_refused_up_to_the_cut_off_and_may_return_after_it(
    forgotten: Scope, position: int, refusal: Refusal | None
) -> None:
    stones = Stones().add(GATE.for_subject(forgotten, CUT_OFF))
    assert GATE.decide(write(source=origin("m-9", position), confirmed=True), stones) is refusal


def test_forgetting_a_user_reaches_every_project_and_forgetting_a_project_only_that_one() -> None:
    user = Stones().add(GATE.for_subject(elsewhere(project=None), CUT_OFF))
    project = Stones().add(GATE.for_subject(HOME, CUT_OFF))
    old = origin("m-9", CUT_OFF)
    for scope in (HOME, elsewhere(project="q"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=old), user) is Refusal.SUBJECT_TOMBSTONED
    for scope in (elsewhere(project="q"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=old), project) is None


def test_another_user_passes_even_with_a_longer_name() -> None:
    stones = Stones().add(GATE.for_subject(elsewhere(project=None), CUT_OFF))
    for user in ("u1", "U", "v"):
        assert GATE.decide(write(scope=elsewhere(user=user), source=origin("m-9", 1)), stones) is None


# Key.


@pytest.mark.parametrize(
    ("position", "refusal"),
    [(CUT_OFF - 1, Refusal.KEY_TOMBSTONED), (CUT_OFF, Refusal.KEY_TOMBSTONED), (CUT_OFF + 1, None)],
)
def test_a_forgotten_key_is_refused_up_to_the_cut_off(position: int, refusal: Refusal | None) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    assert GATE.decide(write("light", source=origin("m-9", position)), stones) is refusal


@pytest.mark.parametrize("key", [None, "theme2", "Theme", "accent"])
def test_another_key_passes(key: str | None) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    assert GATE.decide(write(key=key, source=origin("m-9", 1)), stones) is None


def test_the_same_key_of_another_scope_passes() -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    for scope in (elsewhere(project="q"), elsewhere(user="v"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=origin("m-9", 1)), stones) is None


# Text.


@pytest.mark.parametrize("text", ["dark", "DARK", "  dark\n", "\uff44\uff41\uff52\uff4b"])
def test_a_forgotten_text_is_refused_from_any_source_and_in_any_spelling(text: str) -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "Dark", CUT_OFF))
    assert GATE.decide(write(text, source=origin("m-9", 10**9)), stones) is Refusal.TEXT_TOMBSTONED


@pytest.mark.parametrize(
    ("confirmed", "position", "ancestors", "passes"),
    [
        (True, CUT_OFF + 1, (), True),
        (True, CUT_OFF, (), False),
        (True, CUT_OFF - 1, (), False),
        (True, CUT_OFF + 1, ("m-0",), False),
        (False, CUT_OFF + 1, (), False),
        (False, CUT_OFF, ("m-0",), False),
    ],
    ids=["fresh", "at-the-cut-off", "older", "derived", "unconfirmed", "none-of-it"],
)
def test_only_a_fresh_confirmation_lets_a_forgotten_text_pass(
    *, confirmed: bool, position: int, ancestors: tuple[str, ...], passes: bool
) -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    refusal = GATE.decide(write(source=origin("m-9", position, *ancestors), confirmed=confirmed), stones)
    assert refusal is (None if passes else Refusal.TEXT_TOMBSTONED)


def test_a_confirmation_must_be_newer_than_the_last_erasure_of_the_text() -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", 5), GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    assert GATE.decide(write(source=origin("m-9", 7), confirmed=True), stones) is Refusal.TEXT_TOMBSTONED
    assert GATE.decide(write(source=origin("m-9", 11), confirmed=True), stones) is None


def test_a_forgotten_text_passes_under_another_key_or_in_another_scope() -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    assert GATE.decide(write(key="chocolate"), stones) is None
    assert GATE.decide(write(key=None), stones) is None
    assert GATE.decide(write(scope=elsewhere(project="q")), stones) is None
    assert GATE.decide(write("darker"), stones) is None


@pytest.mark.parametrize("key", [None, "theme", "chocolate"])
def test_a_text_forgotten_without_a_key_is_refused_under_every_key(key: str | None) -> None:
    stones = Stones().add(GATE.for_text(HOME, None, "dark", CUT_OFF))
    assert GATE.decide(write(key=key), stones) is Refusal.TEXT_TOMBSTONED


# Distinctive tokens of a source.


def lost_passport(gate: Gate = GATE) -> list[Tombstone]:
    return list(gate.for_tokens(HOME, "m-1", ["nx4711", "utrecht"], CUT_OFF))


def test_the_same_fact_in_other_words_from_the_same_source_is_refused() -> None:
    stones = Stones().add(*lost_passport())
    for text in ("my passport is NX4711", "I was born in utrecht."):
        for source in (origin("m-1", 3), origin("summary", 99, "m-1")):
            assert GATE.decide(write(text, key="other", source=source), stones) is Refusal.TOKEN_TOMBSTONED


def test_a_different_fact_from_the_same_source_passes() -> None:
    stones = Stones().add(*lost_passport())
    assert GATE.decide(write("my dog is called Rex", source=origin("m-1", 3)), stones) is None
    assert GATE.decide(write("flight NX47110", source=origin("m-1", 3)), stones) is None


def test_the_token_passes_from_a_source_that_lost_nothing_or_in_another_scope() -> None:
    stones = Stones().add(*lost_passport())
    assert GATE.decide(write("passport NX4711", source=origin("m-2")), stones) is None
    assert GATE.decide(write("passport NX4711", scope=elsewhere(user="v"), source=origin("m-1")), stones) is None


def test_a_token_counts_only_where_the_source_is_marked_as_having_lost_a_fact() -> None:
    marker, *tokens = lost_passport()
    assert marker.kind is TombstoneKind.FACT_SOURCE
    assert GATE.decide(write("passport NX4711", source=origin("m-1")), Stones().add(*tokens)) is None
    assert GATE.decide(write("passport NX4711", source=origin("m-1")), Stones().add(marker)) is None


def test_tokens_are_looked_up_only_for_a_source_that_lost_a_fact() -> None:
    stones = Stones().add(*lost_passport())
    GATE.decide(write("passport NX4711", source=origin("m-2")), stones)
    assert len(stones.asked) == 1
    GATE.decide(write("passport NX4711", source=origin("m-1")), stones)
    assert len(stones.asked) == 3


# Tenants, several reasons, kinds.


def test_another_tenant_with_the_same_ids_passes() -> None:
    rows = [
        GATE.for_source("t", "m-1", CUT_OFF),
        GATE.for_subject(HOME, CUT_OFF),
        GATE.for_key(HOME, "theme", CUT_OFF),
        GATE.for_text(HOME, "theme", "dark", CUT_OFF),
        *lost_passport(),
    ]
    same = write(scope=elsewhere(tenant="other"), source=origin("m-1", 1))
    assert GATE.decide(same, Stones().add(*rows)) is None
    # Even rows that were filed under the wrong tenant match nobody else.
    assert GATE.decide(same, Stones().add(*rows, tenant="other")) is None


def test_of_several_reasons_the_widest_is_named() -> None:
    stones = Stones()
    source = origin("m-1", CUT_OFF)
    narrow_to_wide = [
        (GATE.for_text(HOME, "theme", "passport nx4711", CUT_OFF), Refusal.TEXT_TOMBSTONED),
        (lost_passport(), Refusal.TOKEN_TOMBSTONED),
        (GATE.for_key(HOME, "theme", CUT_OFF), Refusal.KEY_TOMBSTONED),
        (GATE.for_subject(HOME, CUT_OFF), Refusal.SUBJECT_TOMBSTONED),
        (GATE.for_source("t", "m-1", CUT_OFF), Refusal.SOURCE_TOMBSTONED),
    ]
    for made, refusal in narrow_to_wide:
        stones.add(*(made if isinstance(made, list) else [made]))
        assert GATE.decide(write("passport NX4711", source=source), stones) is refusal


@pytest.mark.parametrize("kind", list(TombstoneKind))
def test_a_row_whose_kind_was_changed_does_not_count(kind: TombstoneKind) -> None:
    made = GATE.for_source("t", "m-1", CUT_OFF)
    changed = Tombstone(kind=kind, key_id=made.key_id, mac=made.mac, cut_off=made.cut_off)
    stones = Stones().add(changed)
    refusal = GATE.decide(write("passport NX4711", source=origin("m-1")), stones)
    assert len(stones.asked) == 1, "it is no marker of a lost fact either"
    assert refusal is (Refusal.SOURCE_TOMBSTONED if kind is TombstoneKind.SOURCE else None)


# Keys.


@pytest.mark.parametrize(
    ("stone", "text", "refusal"),
    [
        (GATE.for_source("t", "m-1", CUT_OFF), "x", Refusal.SOURCE_TOMBSTONED),
        (GATE.for_subject(HOME, CUT_OFF), "x", Refusal.SUBJECT_TOMBSTONED),
        (GATE.for_key(HOME, "theme", CUT_OFF), "x", Refusal.KEY_TOMBSTONED),
        (GATE.for_text(HOME, "theme", "dark", CUT_OFF), "dark", Refusal.TEXT_TOMBSTONED),
    ],
    ids=lambda v: str(v.value) if isinstance(v, Refusal) else "",
)
def test_old_tombstones_still_block_after_a_rotation(stone: Tombstone, text: str, refusal: Refusal) -> None:
    new = Gate(ROTATED)
    assert new.decide(write(text, source=origin("m-1", CUT_OFF)), Stones().add(stone)) is refusal


def test_old_tokens_and_old_sources_still_block_after_a_rotation() -> None:
    new = Gate(ROTATED)
    assert new.decide(write("NX4711", source=origin("m-1")), Stones().add(*lost_passport())) is Refusal.TOKEN_TOMBSTONED
    old = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert new.source_refused("t", ["m-1"], old) is Refusal.SOURCE_TOMBSTONED


def test_new_tombstones_are_made_under_the_current_key() -> None:
    assert Gate(ROTATED).for_source("t", "m-1", CUT_OFF).key_id == "tk-2"
    assert GATE.for_source("t", "m-1", CUT_OFF).key_id == "tk-1"


def test_a_tombstone_under_an_unknown_key_refuses_every_write() -> None:
    stones = Stones().add(Gate(ROTATED).for_source("t", "m-1", CUT_OFF))
    unregistered = Write(scope=HOME, key=None, text="x", origin=None)
    for attempt in (write(source=origin("m-2"), confirmed=True), write(key=None), unregistered):
        assert GATE.decide(attempt, stones) is Refusal.KEYRING_INCOMPLETE
    assert GATE.source_refused("t", ["m-2"], stones) is Refusal.KEYRING_INCOMPLETE


def test_an_unknown_key_of_one_tenant_does_not_stop_another() -> None:
    stones = Stones().add(Gate(ROTATED).for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(scope=elsewhere(tenant="other")), stones) is None


# What a tombstone holds.


def test_tombstones_hold_no_text() -> None:
    scope = Scope(tenant="clinic-north", user="alice", project="diary")
    made = [
        GATE.for_source("clinic-north", "message-of-alice", CUT_OFF),
        GATE.for_subject(scope, CUT_OFF),
        GATE.for_key(scope, "diagnosis", CUT_OFF),
        GATE.for_text(scope, "diagnosis", "asthma", CUT_OFF),
        *GATE.for_tokens(scope, "message-of-alice", ["nx4711"], CUT_OFF),
    ]
    assert {t.kind for t in made} == set(TombstoneKind)
    assert {f.name for f in fields(Tombstone)} == {"kind", "key_id", "mac", "cut_off"}
    for stone in made:
        assert re.fullmatch(r"[0-9a-f]{64}", stone.mac)
        for word in ("clinic", "alice", "diary", "diagnosis", "asthma", "nx4711"):
            assert word not in repr(stone)


PARTS = st.sampled_from(["a", "b", "a:b", ":", 'a","b', "null", "报告"])
PLACES = st.tuples(st.builds(Scope, tenant=PARTS, user=PARTS, project=st.none() | PARTS), PARTS)


@settings(deadline=None)
@given(PLACES, PLACES)
def test_two_pairs_of_scope_and_key_never_share_a_mac(one: tuple[Scope, str], other: tuple[Scope, str]) -> None:
    a, b = GATE.for_key(*one, CUT_OFF), GATE.for_key(*other, CUT_OFF)
    assert (a.mac == b.mac) is (one == other)


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20), st.integers(1, 20), st.integers(1, 20))
def test_a_forgotten_key_blocks_exactly_what_is_not_newer(text: str, cut_off: int, position: int) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", cut_off))
    refusal = GATE.decide(write(text, source=origin("m-9", position)), stones)
    assert (refusal is Refusal.KEY_TOMBSTONED) is (position <= cut_off)


# Handles.


def test_a_handle_names_without_saying_what_and_survives_rotation() -> None:
    handle = GATE.handle("t", "memory", "asthma", None)
    assert re.fullmatch(r"[0-9a-f]{32}", handle)
    assert Gate(ROTATED.rotate()).handle("t", "memory", "asthma", None) == handle
    assert len({handle, GATE.handle("other", "memory", "asthma", None), GATE.handle("t", "memory", "asthma")}) == 3


def test_a_handle_survives_eleven_rotations() -> None:
    ring = RING
    for _ in range(11):
        ring = ring.rotate()
    assert ring.current == "tk-12"
    assert Gate(ring).handle("t", "x") == GATE.handle("t", "x")


def test_a_handle_survives_the_rotation_of_a_ring_with_names_of_its_own() -> None:
    own = Keyring(current="clinic-2024", keys={"clinic-2024": bytes(range(32))})
    assert Gate(own.rotate()).handle("t", "x") == Gate(own).handle("t", "x")
