"""The error tree answers one question: whether it is worth trying again.

The docstring is the default message; facts travel as data, never inside the text, and are
never personal (codes, ids, counts).
"""

from __future__ import annotations

from inspect import getdoc

from orchestrator.domain.codes import ErrorCode, Refusal


class ExpungeError(Exception):
    """Something that Expunge reports."""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        """Take the docstring as the message where none is given."""
        super().__init__(message or getdoc(type(self)))
        self.facts = facts


class ErasureError(ExpungeError):
    """An erasure could not be carried out."""

    code: ErrorCode = ErrorCode.UNKNOWN

    def __init__(self, message: str | None = None, *, code: ErrorCode | None = None, **facts: object) -> None:
        """Carry a code: it is all that the ledger keeps of an error."""
        super().__init__(message, **facts)
        if code is not None:
            self.code = code


class Transient(ErasureError):
    """It may work if it is tried again later."""

    code = ErrorCode.TRANSIENT


class Permanent(ErasureError):
    """It will not work however often it is tried."""

    code = ErrorCode.PERMANENT


class StoreUnreachable(Transient):
    """The store does not answer."""

    code = ErrorCode.STORE_UNREACHABLE


class StoreLocked(Transient):
    """Another process holds the store."""

    code = ErrorCode.STORE_LOCKED


class StaleSource(Transient):
    """The source was put back and is not yet up to date with what was forgotten: run `expunge restore`."""

    code = ErrorCode.STALE_SOURCE


class DeadlinePassed(Transient):
    """The call was not begun or not finished before its deadline."""

    code = ErrorCode.DEADLINE_PASSED


class NeedsConfirmation(Permanent):
    """The store matches more than was found."""

    code = ErrorCode.NEEDS_CONFIRMATION


class BadAnswer(Permanent):
    """The adapter's answer does not fit its orders or does not add up."""

    code = ErrorCode.BAD_ANSWER


class Refused(ExpungeError):
    """A rule refuses this command."""


class RuleRefused(Refused):
    """A rule of the workflow refuses this command."""

    def __init__(self, refusal: Refusal) -> None:
        """Say why by code."""
        super().__init__(refusal.sentence, code=refusal)
        self.refusal = refusal


class HoldNotFound(Refused):
    """There is no such hold: `expunge hold list` names them."""


class IdempotencyConflict(Refused):
    """This idempotency key was used for another request: give another one."""


class JobNotFound(Refused):
    """There is no such job: `expunge list` names them."""


class GateRefused(Refused):
    """The gate refused a write."""

    def __init__(self, refusal: Refusal) -> None:
        """Say why by code; the refused text is not repeated."""
        super().__init__(refusal.sentence, code=refusal)
        self.refusal = refusal


class InvalidRequest(ExpungeError, ValueError):
    """The request is not valid."""


class KeyringUnusable(ExpungeError):
    """A key is missing or does not match its check value."""
