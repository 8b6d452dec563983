"""The keyring: whatever is not a whole ring with matching check values is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from orchestrator.domain.errors import KeyringUnusable
from orchestrator.gate.keyring import SECRET_BYTES, Keyring, check_value

SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))


def entry(secret: bytes = SECRET) -> dict[str, str]:
    return {"secret": base64.b64encode(secret).decode(), "check": check_value(secret)}


def ring(**changes: object) -> str:
    whole: dict[str, Any] = {"current": "tk-1", "keys": {"tk-1": entry()}}
    return json.dumps(whole | changes)


def test_a_whole_ring_is_read() -> None:
    keyring = Keyring.parse(ring(current="tk-2", keys={"tk-1": entry(), "tk-2": entry(OTHER)}))
    assert keyring.current == "tk-2"
    assert keyring.key_ids == {"tk-1", "tk-2"}


def test_a_dumped_ring_reads_back_as_the_same_keys() -> None:
    keyring = Keyring.create().rotate()
    again = Keyring.parse(keyring.dump())
    assert again.current == keyring.current
    assert again.key_ids == keyring.key_ids
    for key_id in keyring.key_ids:
        assert again.tenant_key("t", key_id) == keyring.tenant_key("t", key_id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "null",
        '"tk-1"',
        "{}",
        ring(keys=None),
        ring(keys=[]),
        ring(keys={"tk-1": None}),
        ring(keys={"tk-1": "secret"}),
        ring(keys={"tk-1": {"secret": entry()["secret"]}}),
        ring(keys={"tk-1": {"check": entry()["check"]}}),
        json.dumps({"keys": {"tk-1": entry()}}),
    ],
)
def test_what_is_not_a_ring_is_refused(text: str) -> None:
    with pytest.raises(KeyringUnusable, match="not readable as JSON") as caught:
        Keyring.parse(text)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("keys", [{}, {"tk-2": entry()}])
def test_a_ring_without_its_current_key_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(KeyringUnusable, match="current key"):
        Keyring.parse(ring(keys=keys))


@pytest.mark.parametrize(
    "secret",
    ["", None, 7, "***", base64.b64encode(SECRET[:31]).decode(), SECRET.hex()[:8]],
)
def test_a_missing_or_short_secret_is_refused(secret: object) -> None:
    with pytest.raises(KeyringUnusable, match="missing or shorter than 32 bytes"):
        Keyring.parse(ring(keys={"tk-1": entry() | {"secret": secret}}))


@pytest.mark.parametrize(
    "check", ["", None, 0, check_value(OTHER), check_value(SECRET).upper(), check_value(SECRET)[:8]]
)
def test_a_wrong_check_value_is_refused(check: object) -> None:
    with pytest.raises(KeyringUnusable, match="does not match its check value"):
        Keyring.parse(ring(keys={"tk-1": entry() | {"check": check}}))


def test_one_wrong_key_refuses_the_whole_ring() -> None:
    with pytest.raises(KeyringUnusable, match="'tk-2'"):
        Keyring.parse(ring(keys={"tk-1": entry(), "tk-2": entry() | {"check": check_value(OTHER)}}))


@pytest.mark.parametrize(
    "text",
    [
        ring(current=["tk-1"]),
        ring(keys={"tk-1": entry() | {"secret": "é"}}),
        ring(keys={"tk-1": entry() | {"check": "é"}}),
    ],
    ids=["current-is-a-list", "secret-is-not-ascii", "check-is-not-ascii"],
)
def test_a_damaged_ring_is_refused_and_not_an_accident(text: str) -> None:
    with pytest.raises(KeyringUnusable):
        Keyring.parse(text)


def test_a_fresh_ring_has_one_random_secret_and_is_named_by_it() -> None:
    one, other = Keyring.create(), Keyring.create()
    assert one.key_ids == {one.current}
    assert one.current == f"tk-{json.loads(one.dump())['keys'][one.current]['check'][:8]}"
    assert one.current != other.current, "a ring that replaces a lost one answers to no name of it"
    assert one.tenant_key("t", one.current) != other.tenant_key("t", other.current)


@pytest.mark.parametrize("held", ["tk-1", "tk-2", "clinic-2024"])
def test_rotation_adds_a_key_and_keeps_the_old_ones(held: str) -> None:
    old = Keyring(current=held, keys={held: SECRET})
    new = old.rotate()
    assert new.key_ids == {held, new.current}
    assert new.current == f"tk-{json.loads(new.dump())['keys'][new.current]['check'][:8]}"
    assert new.tenant_key("t", held) == old.tenant_key("t", held)
    assert new.tenant_key("t", new.current) != new.tenant_key("t", held)
    assert old.current == held
    assert old.key_ids == {held}, "the old ring is untouched"
    assert len(new.rotate().key_ids) == 3


def test_each_tenant_has_a_key_of_its_own() -> None:
    keyring = Keyring(current="tk-1", keys={"tk-1": SECRET})
    keys = {keyring.tenant_key(tenant, "tk-1") for tenant in ("a", "b", "A", "报告")}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {SECRET_BYTES}
    assert SECRET not in keys


def test_a_key_that_is_not_in_the_ring_has_no_derived_key() -> None:
    with pytest.raises(KeyError):
        Keyring.create().tenant_key("t", "tk-9")


def test_a_ring_never_prints_a_secret() -> None:
    keyring = Keyring(current="tk-1", keys={"tk-1": SECRET})
    for shown in (repr(keyring), str(keyring), f"{keyring}", repr(keyring.key_ids), repr(keyring.tenant_key)):
        assert entry()["secret"] not in shown
        assert SECRET.hex() not in shown
        assert repr(SECRET) not in shown


@pytest.mark.parametrize(
    "text",
    [
        ring()[:-1],
        ring(current="gone"),
        ring(keys={"tk-1": entry() | {"check": "0"}}),
        ring(keys={"tk-1": entry() | {"secret": entry(SECRET[:31])["secret"]}}),
    ],
)
def test_a_refusal_never_repeats_a_secret(text: str) -> None:
    with pytest.raises(KeyringUnusable) as caught:
        Keyring.parse(text)
    shown = f"{caught.value} {caught.value.facts} {caught.value.__cause__!r}"
    assert entry()["secret"][:16] not in shown


def test_a_check_value_does_not_give_its_secret_away() -> None:
    assert check_value(SECRET) != check_value(OTHER)
    assert len(check_value(SECRET)) == 32
    assert check_value(SECRET) not in SECRET.hex()
