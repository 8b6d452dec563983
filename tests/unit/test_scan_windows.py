"""Which windows of a value are chosen: any surviving run of 23 bytes that says something holds one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.scan.windows import SHORT, STRIDE, WINDOW, repeats, starts

# Few letters, and stretches of one, so that repetitions are common.
STRETCHES = st.lists(st.tuples(st.sampled_from([b"\0", b" ", b"ab", b"\0\0\x80?", b"xyz12"]), st.integers(1, 30)))
WILD = st.one_of(st.binary(max_size=120), STRETCHES.map(lambda parts: b"".join(part * n for part, n in parts)[:200]))


def telling(value: bytes) -> list[int]:
    windows = (value[start : start + WINDOW] for start in range(len(value) - WINDOW + 1))
    return [start for start, window in enumerate(windows) if window[:4] * 4 != window]


@settings(deadline=None, max_examples=300)
@given(WILD, st.integers(1, 24))
@example(b"x" * 40 + b"passport" + b"x" * 40, 8)
def test_any_run_of_stride_and_fifteen_bytes_holds_a_chosen_window(value: bytes, stride: int) -> None:
    chosen, worth = set(starts(value, stride)), set(telling(value))
    reach = WINDOW if len(value) <= SHORT else stride + WINDOW - 1
    for first in range(len(value) - reach + 1):
        inside = set(range(first, first + reach - WINDOW + 1))
        assert not inside & worth or inside & chosen


@settings(deadline=None)
@given(WILD)
def test_a_repetition_is_never_chosen(value: bytes) -> None:
    assert set(starts(value)) <= set(telling(value))


@settings(deadline=None)
@given(st.binary(min_size=WINDOW, max_size=100))
def test_the_end_of_a_value_is_chosen_if_it_says_something(value: bytes) -> None:
    last = len(value) - WINDOW
    assert (last in starts(value)) is (last in telling(value))


@settings(deadline=None)
@given(st.binary(max_size=SHORT))
def test_a_short_value_has_all_of_its_windows(value: bytes) -> None:
    assert starts(value) == telling(value)


@pytest.mark.parametrize(
    ("length", "chosen"),
    [(0, []), (15, []), (16, [0]), (17, [0, 1]), (32, [*range(17)]), (33, [0, 8, 16, 17]), (40, [0, 8, 16, 24])],
)
def test_windows_of_a_value_by_its_length(length: int, chosen: list[int]) -> None:
    assert starts(bytes(range(length))) == chosen


def test_a_long_value_has_one_window_in_eight_bytes() -> None:
    assert len(starts(bytes(range(256)) * 40)) == (256 * 40 - WINDOW) // STRIDE + 1


@pytest.mark.parametrize("unit", [b"\0", b"ab", b"1234"])
def test_a_unit_of_up_to_four_bytes_over_and_over_says_nothing(unit: bytes) -> None:
    value = unit * 25
    assert repeats(value, 0)
    assert starts(value) == []


def test_a_unit_of_five_bytes_says_something() -> None:
    assert starts(b"12345" * 8) == [0, 8, 16, 24]


def test_neighbours_of_a_repetition_stand_in_for_it() -> None:
    value = b"." * 20 + b"passport" + b"." * 20
    assert starts(value) == [5, 8, 16, 24, 27]
    assert [repeats(value, place) for place in (4, 5, 27, 28)] == [True, False, False, True]
