"""The sieve beside a search by hand: every position, no false hit, whoever wants the bytes."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import Fingerprint
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.sieve import FLAGS_PER_ROW, MOST_BITS, Sieve

BY = Fingerprinter(Keys(base=0x9E3779B97F4A7C15, window=b"w" * 32, seal=b"s" * 32))
# With this base the hash is the sum of the bytes: any order of the same bytes has the same one.
COLLIDING = Fingerprinter(Keys(base=1, window=b"w" * 32, seal=b"s" * 32))
VALUE = b"P1234567, the passport of Ada Lovelace"


def hits(data: bytes, *values: bytes, by: Fingerprinter = BY) -> Counter[int]:
    sieve = Sieve(by, [by.of_bytes(value).rows for value in values], max(len(data), 16))
    return sieve.hits(np.frombuffer(data, dtype=np.uint8))


def by_hand(data: bytes, *values: bytes, by: Fingerprinter = BY) -> Counter[int]:
    counted: Counter[int] = Counter()
    for owner, value in enumerate(values):
        wanted = {row.mac for row in by.of_bytes(value).rows}
        windows = (data[place : place + 16] for place in range(len(data) - 15))
        counted[owner] = sum(by.mac(window).hex() in wanted for window in windows)
    return +counted


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 300), st.binary(min_size=16, max_size=60))
def test_a_value_is_seen_at_any_offset_and_counted_as_by_hand(around: bytes, offset: int, value: bytes) -> None:
    data = around[:offset] + value + around[offset:]
    assert hits(data, value) == by_hand(data, value)


@settings(deadline=None)
@given(st.lists(st.sampled_from([VALUE, VALUE[3:], b"passport", bytes(20), b"12345" * 6, b"ab"]), max_size=12))
def test_owners_that_hold_the_same_bytes_each_have_their_hits(parts: list[bytes]) -> None:
    data = b"".join(parts)
    values = (VALUE, VALUE, VALUE[8:], b"12345" * 9)
    found = hits(data, *values)
    assert found == by_hand(data, *values)
    assert found[0] == found[1]


@pytest.mark.parametrize("by", [BY, COLLIDING], ids=["random base", "base 1"])
def test_a_piece_without_the_value_has_no_hit(by: Fingerprinter) -> None:
    data = random.Random(1).randbytes(50_000)  # noqa: S311 - an example, not a secret
    assert hits(data, VALUE, by=by) == Counter()


class Noting(Fingerprinter):
    """Notes the windows whose mac is asked for."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.asked: list[bytes] = []

    def mac(self, window: bytes) -> bytes:
        self.asked.append(window)
        return super().mac(window)


def test_mac_is_asked_for_once_for_each_window_whose_hash_is_wanted() -> None:
    values = [random.Random(n).randbytes(16) for n in range(2_000)]  # noqa: S311
    noise = random.Random(1_000_000).randbytes(50_000)  # noqa: S311
    by = Noting(Keys(base=BY.base, window=b"w" * 32, seal=b"s" * 32))
    sieve = Sieve(by, [by.of_bytes(value).rows for value in values], 60_000)
    by.asked.clear()
    assert len(sieve._candidates(np.frombuffer(noise, dtype=np.uint8))) > 500
    sieve.hits(np.frombuffer(noise + values[0] * 3 + values[1], dtype=np.uint8))
    assert by.asked == values[:2]


def test_bytes_with_the_same_hash_are_refused_by_their_mac() -> None:
    window, other = b"P1234567 of Ada.", b".adA fo 7654321P"
    assert COLLIDING.roll(window) == COLLIDING.roll(other)
    assert hits(other * 3, window, by=COLLIDING) == Counter()
    assert hits(b"P1234567 of Ada." + other, window, by=COLLIDING) == {0: 1}


def test_a_fingerprint_with_the_mac_of_another_window_is_no_hit() -> None:
    (one,), (other,) = (BY.of_bytes(value).rows for value in (VALUE[:16], VALUE[16:32]))
    mixed = Fingerprint(one.roll, other.mac)
    piece = np.frombuffer(VALUE, dtype=np.uint8)
    assert Sieve(BY, [[mixed]], 64).hits(piece) == Counter()
    assert Sieve(BY, [[one, mixed, one]], 64).hits(piece) == {0: 1}, "a row that comes twice counts once"


@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_piece_of_fewer_than_16_bytes_holds_no_window(size: int) -> None:
    assert hits(VALUE[:size], VALUE) == Counter()


@pytest.mark.parametrize("size", [16, 17])
def test_a_piece_of_sixteen_bytes_and_more_is_looked_at(size: int) -> None:
    assert hits(VALUE[:size], VALUE[:size]) == {0: size - 15}


def test_nothing_wanted_is_nothing_found() -> None:
    assert hits(VALUE) == Counter()
    assert hits(VALUE, b"") == Counter()


def test_a_piece_that_is_full_of_one_value_is_counted_to_the_last_position() -> None:
    assert hits(b"12345" * 200, b"12345" * 12) == {0: 1000 - 15}


def test_a_wanted_hash_at_either_end_of_the_order_is_found() -> None:
    values = [random.Random(n).randbytes(16) for n in range(200)]  # noqa: S311
    assert hits(b"".join(values), *values) == dict.fromkeys(range(200), 1)


def test_the_table_of_flags_does_not_grow_for_ever() -> None:
    row = BY.of_bytes(VALUE[:16]).rows[0]
    many = [[Fingerprint(number, row.mac)] for number in range(2**MOST_BITS // FLAGS_PER_ROW)]
    sieve = Sieve(BY, [*many, [row]], 64)
    assert len(sieve._flags) == 2**MOST_BITS
    assert sieve.hits(np.frombuffer(VALUE, dtype=np.uint8)) == {len(many): 1}
