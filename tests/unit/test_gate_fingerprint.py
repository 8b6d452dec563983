"""Folding, tokens and keyed hashes: all that a tombstone knows of a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.gate.fingerprint import MAX_TOKENS, candidate_tokens, distinctive_tokens, fold, keyed_hash

KEY = bytes(range(32))
PARTS = st.lists(st.text(max_size=20) | st.none() | st.integers(), max_size=4)
WILD = st.text(
    st.sampled_from("aA\u0345\u0301\u0307\u0131\u0130ß\ufb01\u017fΣς\u1fb3 \u00a0\u3000\t\n\uff2b½") | st.characters(),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Dark Mode", "dark mode"),
        ("  dark \t\n mode ", "dark mode"),
        ("dark\u00a0mode", "dark mode"),
        ("\uff44\uff41\uff52\uff4b", "dark"),
        ("Straße", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),
        ("\ufb01ne", "fine"),
        ("ΟΔΟΣ", "οδος"),
    ],
)
def test_texts_that_a_reader_takes_for_one_fold_to_one(text: str, same: str) -> None:
    assert fold(text) == fold(same)


@pytest.mark.parametrize(("text", "other"), [("dark", "darker"), ("dark mode", "darkmode"), ("resume", "résumé")])
def test_texts_that_differ_stay_two(text: str, other: str) -> None:
    assert fold(text) != fold(other)


@settings(deadline=None)
@given(WILD)
@example("\xdf\u0301")  # casefolding leaves a letter and an accent that could be one character
@example("\u0130\u0331")
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@settings(deadline=None)
@given(WILD, st.sampled_from(["NFC", "NFD"]))
def test_a_text_folds_alike_however_its_accents_are_stored(text: str, form: Literal["NFC", "NFD"]) -> None:
    assert fold(unicodedata.normalize(form, text)) == fold(text)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_candidates_are_folded_and_long_or_hold_a_digit(text: str) -> None:
    for token in candidate_tokens(text):
        assert token in fold(text)
        assert len(token) >= 5 or re.search(r"\d", token)


def test_a_candidate_has_five_letters_or_a_digit() -> None:
    assert candidate_tokens("Her Visa no. X7 ends in APRIL, she said") == {"x7", "april"}
    assert candidate_tokens("four 1234 fives") == {"1234", "fives"}
    assert candidate_tokens("") == frozenset()


def test_a_token_that_lives_elsewhere_is_not_distinctive() -> None:
    asked: list[Collection[str]] = []

    def elsewhere(tokens: Collection[str]) -> Collection[str]:
        asked.append(tokens)
        return {"passport", "never-asked-for"}

    assert distinctive_tokens("Passport NX4711 Utrecht", elsewhere) == ("nx4711", "utrecht")
    assert asked == [frozenset({"passport", "nx4711", "utrecht"})], "one question for the whole text"


def test_digits_come_first_then_longer_words_then_the_alphabet() -> None:
    text = "zebra apple elephant 7 12345"
    assert distinctive_tokens(text, lambda _: ()) == ("12345", "7", "elephant", "apple", "zebra")


def test_at_most_sixteen_tokens_are_kept_and_those_with_digits_survive() -> None:
    text = " ".join(f"ordinaryword{c}" for c in "abcdefghijklmnopqrst") + " n1 n2"
    tokens = distinctive_tokens(text, lambda _: ())
    assert len(tokens) == MAX_TOKENS == 16
    assert tokens[:2] == ("n1", "n2")


def test_a_keyed_hash_is_64_hex_digits_and_depends_on_the_key() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", keyed_hash(KEY, "text", None, 7))
    assert keyed_hash(KEY, "text") != keyed_hash(bytes(32), "text")


def test_a_keyed_hash_stays_what_it_was() -> None:
    # Stored tombstones would no longer match if this ever changed.
    assert keyed_hash(KEY, "text", '["t","u",null]', None, "dark") == STORED


STORED = "5f040cc332beda920943277fbaddde041224af38e358b7d12801f26e9ff63f53"


@settings(deadline=None)
@given(PARTS, PARTS)
def test_only_equal_parts_share_a_hash(one: list[str | int | None], other: list[str | int | None]) -> None:
    assert (keyed_hash(KEY, *one) == keyed_hash(KEY, *other)) is (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a:b", "c"), ("a", "b:c")),
        (("a", ""), ("a",)),
        (("a", None), ("a", "null")),
        (("1",), (1,)),
        (('a","b',), ("a", "b")),
        (("\U0001f600",), ("\ud83d\ude00",)),
    ],
)
def test_no_delimiter_can_make_two_hashes_one(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    assert keyed_hash(KEY, *one) != keyed_hash(KEY, *other)


def test_a_lone_surrogate_has_a_hash_and_no_exception() -> None:
    assert keyed_hash(KEY, "\ud800") != keyed_hash(KEY, "\udfff")
