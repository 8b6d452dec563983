"""Codes and errors: a closed set of words, each with a sentence."""

from __future__ import annotations

import re

import pytest

from orchestrator.domain import errors
from orchestrator.domain.codes import (
    Code,
    CrashPoint,
    ErrorCode,
    HoldReason,
    Parked,
    Reason,
    Refusal,
    Residual,
    WaiverReason,
)
from orchestrator.domain.errors import (
    ErasureError,
    ExpungeError,
    GateRefused,
    InvalidRequest,
    NeedsConfirmation,
    Permanent,
    Refused,
    RuleRefused,
    StoreLocked,
    StoreUnreachable,
    Transient,
)
from orchestrator.service.outstanding import Why
from orchestrator.service.report import Standing

OF_LEDGER: list[type[Code]] = [Reason, HoldReason, WaiverReason, Parked, ErrorCode, Residual, Refusal, CrashPoint]
ENUMS: list[type[Code]] = [*OF_LEDGER, Standing, Why]  # the last two are words of a report alone
EVERY_CODE = [code for enum in ENUMS for code in enum]
EVERY_ERROR = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, ExpungeError)]


def test_no_enum_of_codes_is_left_out_here() -> None:
    assert set(Code.__subclasses__()) == set(ENUMS)


@pytest.mark.parametrize("code", EVERY_CODE, ids=lambda c: f"{type(c).__name__}.{c}")
def test_every_code_has_one_plain_sentence(code: Code) -> None:
    assert re.fullmatch(r"[A-Z][^.!?\n]*[^.!?\s]\.", code.sentence), "one sentence that ends in a full stop"
    assert len(code.sentence) <= 80


@pytest.mark.parametrize("code", EVERY_CODE, ids=lambda c: f"{type(c).__name__}.{c}")
def test_every_code_is_one_word_in_lower_case(code: Code) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code.value)
    assert code.name == code.value.upper()
    assert str(code) == code.value


@pytest.mark.parametrize("enum", ENUMS, ids=lambda e: e.__name__)
def test_a_code_is_found_again_by_its_word_alone(enum: type[Code]) -> None:
    for code in enum:
        assert enum(code.value) is code
    with pytest.raises(ValueError, match="is not a valid"):
        enum("alice lives in Utrecht")


@pytest.mark.parametrize("enum", ENUMS, ids=lambda e: e.__name__)
def test_no_two_codes_of_an_enum_say_the_same(enum: type[Code]) -> None:
    assert len({code.sentence for code in enum}) == len(enum.__members__) == len({code.value for code in enum})


@pytest.mark.parametrize(
    "error", [e for e in EVERY_ERROR if e not in {GateRefused, RuleRefused}], ids=lambda e: e.__name__
)
def test_the_docstring_of_an_error_is_its_message(error: type[ExpungeError]) -> None:
    assert str(error()) == error.__doc__
    assert str(error()).endswith(".")


def test_facts_travel_beside_the_message_and_never_in_it() -> None:
    error = StoreLocked(store="memory", waited=3)
    assert error.facts == {"store": "memory", "waited": 3}
    assert str(error) == "Another process holds the store."
    assert str(StoreLocked("The index is locked.")) == "The index is locked."


def test_an_error_carries_the_code_of_its_class_unless_told_otherwise() -> None:
    assert StoreUnreachable().code is ErrorCode.STORE_UNREACHABLE
    assert Transient(code=ErrorCode.INCONCLUSIVE).code is ErrorCode.INCONCLUSIVE
    assert Transient.code is ErrorCode.TRANSIENT, "the class is untouched"


@pytest.mark.parametrize("error", [e for e in EVERY_ERROR if issubclass(e, ErasureError)], ids=lambda e: e.__name__)
def test_every_error_of_an_adapter_answers_whether_to_try_again(error: type[ErasureError]) -> None:
    assert error is ErasureError or issubclass(error, Transient) is not issubclass(error, Permanent)


def test_a_refusal_of_the_gate_says_its_code_and_no_text() -> None:
    error = GateRefused(Refusal.TEXT_TOMBSTONED)
    assert error.refusal is Refusal.TEXT_TOMBSTONED
    assert str(error) == Refusal.TEXT_TOMBSTONED.sentence
    assert error.facts == {"code": Refusal.TEXT_TOMBSTONED}


def test_callers_can_catch_what_they_mean() -> None:
    assert issubclass(InvalidRequest, ValueError)
    assert issubclass(GateRefused, Refused)
    assert issubclass(NeedsConfirmation, Permanent)
    assert not issubclass(Refused, ErasureError)
