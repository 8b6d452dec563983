"""Fingerprints among the values of live records: found wherever they lie, and never across two values."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator import Fingerprint, Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.sieve import CHUNK
from orchestrator.scan.values import held_by_others

BY = Fingerprinter.of(Keyring.create())


def prints(value: bytes) -> frozenset[Fingerprint]:
    return frozenset(BY.of_bytes(value).rows)


def test_each_owner_is_told_which_of_its_fingerprints_others_hold() -> None:
    shared, own = b"the Lisbon hotel, room 4", b"booking code 4F7Q-9K2M-1"
    wanted = {"a": prints(shared) | prints(own), "b": prints(own), "c": frozenset[Fingerprint]()}
    values = [b"", b"short", b"she stays at " + shared, b"nothing of it is in here at all"]
    assert held_by_others(values, wanted, by=BY) == {"a": prints(shared), "b": frozenset(), "c": frozenset()}


def test_no_value_at_all_holds_nothing() -> None:
    assert held_by_others([], {"a": prints(b"booking code 4F7Q-9K2M-1")}, by=BY) == {"a": frozenset()}


def test_window_across_two_values_is_held_by_none() -> None:
    whole = b"booking code 4F7"  # one window
    for cut in range(1, len(whole)):
        halves = [b"0123456789abcdef" + whole[:cut], whole[cut:] + b"0123456789abcdef"]
        assert held_by_others(halves, {"a": prints(whole)}, by=BY) == {"a": frozenset()}


def test_value_that_ends_in_zeros_is_completed_by_no_gap() -> None:
    ends_in_zeros = b"vector-" + bytes(9)
    assert held_by_others([b"another vector-", b"x" * 20], {"a": prints(ends_in_zeros)}, by=BY) == {"a": frozenset()}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(16, 3 * CHUNK), min_size=1, max_size=4), st.integers(0, 2**32))
@example([2 * CHUNK, 20, CHUNK + 15, CHUNK], 1)
def test_value_is_found_at_every_place_of_values_of_every_size(sizes: list[int], seed: int) -> None:
    secret = b"passport P1234567, of Anna"
    chance = random.Random(seed)  # noqa: S311 - noise, no secret
    values = [chance.randbytes(size) for size in sizes]
    chosen = chance.randrange(len(values))
    at = chance.randrange(len(values[chosen]) + 1)
    values[chosen] = values[chosen][:at] + secret + values[chosen][at:]
    assert held_by_others(values, {"a": prints(secret)}, by=BY) == {"a": prints(secret)}
