"""Fingerprints: the same for the same value and key, in every encoding, and telling nothing to who has no key."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import Fingerprint, InvalidRequest, Keyring
from orchestrator.scan.encodings import Encoding, forms
from orchestrator.scan.fingerprints import MODULUS, Fingerprinter, Prints
from orchestrator.scan.keys import Keys

RING = Keyring(current="tk-1", keys={"tk-1": bytes(range(32))})
KEYS = Keys.derive(RING)
BY = Fingerprinter(KEYS)
VALUE = "Ada's passport P1234567"


def rows(value: bytes, by: Fingerprinter = BY) -> set[Fingerprint]:
    return set(by.of_bytes(value).rows)


def polynomial(window: bytes, base: int) -> int:
    return sum(byte * pow(base, 15 - place, MODULUS) for place, byte in enumerate(window)) % MODULUS


def bases(window: bytes, roll: int) -> set[int]:
    """Solve the polynomial of a known window for its odd base, bit by bit."""
    found = {1}
    for bits in range(2, 65):
        lifted = {base + high for base in found for high in (0, 2 ** (bits - 1))}
        found = {base for base in lifted if (polynomial(window, base) - roll) % 2**bits == 0}
    return found


@pytest.mark.parametrize(
    ("length", "count", "unseen"),
    [(15, 0, {Encoding.UTF_8}), (16, 1, set()), (17, 2, set()), (7, 0, {Encoding.UTF_8, *list(Encoding)[1:3]})],
)
def test_an_encoding_of_fewer_than_16_bytes_is_not_probeable(length: int, count: int, unseen: set[Encoding]) -> None:
    text = "P1234567 of Ada Lovelace"[:length]
    prints = BY.of_text(text)
    assert prints.not_probeable == unseen
    assert len(BY.of_bytes(text.encode()).rows) == count
    assert rows(text.encode()) <= set(prints.rows)


@pytest.mark.parametrize("text", ["", "." * 100, "ab" * 20])
def test_what_is_empty_or_one_short_pattern_is_not_probeable(text: str) -> None:
    assert BY.of_text(text) == Prints(rows=(), not_probeable=frozenset(list(Encoding)[:3]))
    assert BY.of_bytes(bytes(64)) == Prints(rows=(), not_probeable=frozenset({Encoding.RAW}))


def test_a_value_may_be_probeable_in_one_encoding_and_not_in_another() -> None:
    assert BY.of_text("abcd" * 10).not_probeable == {Encoding.UTF_8}


TEXT = 'Zo\u00eb said: "caf\u00e9 at nine", \\ and \u4e2d\u6587 \U0001f600 at home'


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: json.dumps(text)[1:-1].encode(),
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    ],
    ids=list(Encoding)[:5],
)
@pytest.mark.parametrize("given_as", ["NFC", "NFD"])
def test_a_text_is_looked_for_in_every_encoding_and_normal_form(
    given_as: str, encoded: Callable[[str], bytes], form: str
) -> None:
    prints = BY.of_text(unicodedata.normalize(given_as, TEXT))  # type: ignore[arg-type]  # a parameter is a plain text
    value = encoded(unicodedata.normalize(form, TEXT))  # type: ignore[arg-type]
    assert set(BY.of_bytes(value, 16).rows) <= set(prints.rows)


def test_utf_16_has_a_window_for_eight_characters_as_the_others_have() -> None:
    text = "".join(map(chr, range(40, 80)))
    wide, narrow = text.encode("utf-16-le"), text.encode()
    assert {row.mac for row in BY.of_bytes(wide, 16).rows} <= {row.mac for row in BY.of_text(text).rows}
    assert [len(BY.of_bytes(value, stride).rows) for value, stride in ((wide, 16), (narrow, 8))] == [5, 4]


def test_forms_that_say_the_same_are_left_out() -> None:
    assert [encoding for encoding, _ in forms(VALUE)] == list(Encoding)[:3]
    assert [encoding for encoding, _ in forms('He said "so"')] == list(Encoding)[:4]
    assert [encoding for encoding, _ in forms("\u4e2d")] == [*list(Encoding)[:3], Encoding.JSON_ASCII]
    assert len([*forms("\u00e9")]) == 8, "two normal forms of four"


def test_a_lone_surrogate_is_looked_for_and_is_no_error() -> None:
    prints = BY.of_text("\ud800" + VALUE)
    assert rows(("\ud800" + VALUE).encode("utf-8", "surrogatepass")) <= set(prints.rows)


def test_a_vector_is_looked_for_as_float32() -> None:
    vector = struct.pack("<6f", 0.25, -1.5, 3.0, 0.0, 0.125, 7.5)
    assert len(rows(vector)) == 9
    assert BY.of_bytes(memoryview(vector)).rows == BY.of_bytes(vector).rows


def test_a_stride_thins_out_what_is_long() -> None:
    value = bytes(range(256)) * 24
    assert [len(BY.of_bytes(value, stride).rows) for stride in (8, 64)] == [32, 5], "a window that comes again is one"
    assert rows(value[:80]) > set(BY.of_bytes(value[:80], 64).rows)
    assert len(BY.of_text("".join(map(chr, range(32, 127))), 64).rows) == 3 + 2 * 3 + 2


@pytest.mark.parametrize("stride", [0, -1])
def test_a_stride_of_nothing_is_refused_without_the_value(stride: int) -> None:
    with pytest.raises(InvalidRequest, match="stride") as caught:
        BY.of_text(VALUE, stride)
    assert VALUE not in f"{caught.value} {caught.value.facts}"


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=16))
def test_the_rolling_hash_is_the_polynomial(window: bytes) -> None:
    assert BY.roll(window) == polynomial(window, KEYS.base)


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=40))
def test_a_row_fits_its_column_and_gives_its_hash_back(value: bytes) -> None:
    for row in BY.of_bytes(value).rows:
        assert -(2**63) <= row.roll < 2**63
        assert re.fullmatch("[0-9a-f]{64}", row.mac)
        window = next(w for w in (value[n : n + 16] for n in range(len(value))) if BY.mac(w).hex() == row.mac)
        assert BY.unsealed(row) == BY.roll(window)


def test_numbers_of_both_signs_occur() -> None:
    assert {row.roll < 0 for row in BY.of_bytes(bytes(range(200))).rows} == {True, False}


def test_the_same_value_has_the_same_rows_in_their_order() -> None:
    assert BY.of_text(TEXT) == Fingerprinter.of(RING).of_text(TEXT)
    assert len(set(BY.of_text(TEXT).rows)) == len(BY.of_text(TEXT).rows)


def test_rows_stay_what_they_were() -> None:
    # Rows in a database would no longer be found if this ever changed.
    assert BY.of_bytes(b"P1234567 of Ada.").rows == (STORED,)


STORED = Fingerprint(2335743107402517078, "d4488a4f36139f7feef4a2b1763a7487c210dc60f7bfe454c5c09a398dc3c74a")


def test_a_secret_that_is_added_changes_nothing_and_another_ring_everything() -> None:
    assert Fingerprinter.of(RING.rotate()).of_text(VALUE) == BY.of_text(VALUE)
    other = Fingerprinter.of(Keyring.create()).of_text(VALUE).rows
    assert not {row.mac for row in other} & {row.mac for row in BY.of_text(VALUE).rows}
    assert not {row.roll for row in other} & {row.roll for row in BY.of_text(VALUE).rows}


def test_keys_differ_from_each_other_and_from_those_of_tenants() -> None:
    assert {Keys.derive(Keyring.create()).base % 2 for _ in range(20)} == {1}
    secrets = {KEYS.window, KEYS.seal, *(RING.tenant_key(tenant, "tk-1") for tenant in ("", "t"))}
    assert {len(secret) for secret in secrets} == {32}
    assert len(secrets) == 4


def test_who_knows_one_window_could_solve_a_bare_hash_and_not_what_is_stored() -> None:
    window = b"P1234567 of Ada."
    (row,) = BY.of_bytes(window).rows
    assert KEYS.base in bases(window, BY.roll(window)), "this is why it is not stored as it is"
    assert KEYS.base not in bases(window, row.roll % MODULUS)


@pytest.mark.parametrize(
    "keys",
    [
        dataclasses.replace(KEYS, base=KEYS.base + 2),
        dataclasses.replace(KEYS, window=bytes(32)),
        dataclasses.replace(KEYS, seal=bytes(32)),
    ],
    ids=["base", "window", "seal"],
)
def test_without_any_one_of_the_keys_no_row_is_the_same(keys: Keys) -> None:
    assert not rows(VALUE.encode()) & rows(VALUE.encode(), Fingerprinter(keys))


def test_neither_keys_nor_prints_show_what_they_are_made_of() -> None:
    shown = repr((KEYS, BY, BY.of_text(VALUE)))
    for secret in (str(KEYS.base), repr(KEYS.window), KEYS.window.hex(), repr(KEYS.seal), VALUE, "P1234567"):
        assert secret not in shown


def test_a_fingerprint_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Fingerprint(1, "00").roll = 2  # type: ignore[misc]  # what this shows
