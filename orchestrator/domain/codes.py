"""Every code that the ledger, a log line or an error may carry, each with one plain sentence.

The ledger has no free-text column, so these enums are all it can say. They are closed: a
code that is not here cannot be stored, and nothing personal can hide in one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Code(StrEnum):
    """A stable word for machines with a sentence for people."""

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> Self:
        """Keep the sentence beside the word; looking a code up takes the word alone."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member


class Reason(Code):
    """Why an erasure request was made."""

    USER_REQUEST = "user_request", "The data subject asked for it."
    CONSENT_WITHDRAWN = "consent_withdrawn", "The data subject withdrew consent."
    NO_LONGER_NEEDED = "no_longer_needed", "The purpose of the data has ended."
    UNLAWFUL = "unlawful", "The data should not have been processed."
    LEGAL_OBLIGATION = "legal_obligation", "A law requires the erasure."
    CHILD = "child", "The data was collected from a child."
    EXPIRED = "expired", "The retention period of the data has ended."
    RESURRECTION = "resurrection", "A copy was seen again after its job had been verified."
    OPERATOR = "operator", "An operator decided it."


class HoldReason(Code):
    """Why data must stay for now."""

    LITIGATION = "litigation", "A legal claim needs the data."
    INVESTIGATION = "investigation", "An authority or an internal inquiry needs the data."
    LEGAL_OBLIGATION = "legal_obligation", "A law requires the data to be kept."
    DISPUTE = "dispute", "Whether the request is justified is in dispute."


class WaiverReason(Code):
    """Why a job may pass a store that still holds something."""

    UNSUPPORTED = "unsupported", "The store cannot erase this at all."
    STORE_GONE = "store_gone", "The store has been taken out of service."
    HANDLED_ELSEWHERE = "handled_elsewhere", "Somebody erases it outside of Expunge and answers for it."
    OPERATOR = "operator", "An operator decided it."


class Parked(Code):
    """Why a unit waits for a person."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted", "Every attempt in a row has failed."
    PERMANENT_ERROR = "permanent_error", "The adapter says it will never work as it stands."
    UNSUPPORTED = "unsupported", "The store cannot erase this at all; only a waiver lets the job pass."
    NEEDS_CONFIRMATION = "needs_confirmation", "The store matches more than was found; a person has to look."


class ErrorCode(Code):
    """What an attempt of a unit failed with."""

    STORE_UNREACHABLE = "store_unreachable", "The store does not answer."
    STORE_LOCKED = "store_locked", "Another process holds the store."
    STORE_REFUSED = "store_refused", "The store refused the call."
    STALE_SOURCE = "stale_source", "The source was put back and is not yet up to date with what was forgotten."
    DEADLINE_PASSED = "deadline_passed", "The call was not back before its deadline."
    LEASE_ENDED = "lease_ended", "The worker stopped renewing its lease; what it did is unknown."
    PARTIAL = "partial", "More remains than is scheduled to go."
    INCONCLUSIVE = "inconclusive", "The store could not be looked at."
    STILL_PRESENT = "still_present", "Copies were seen again in the last round that is allowed."
    UNSUPPORTED = "unsupported", "The store cannot erase this."
    NEEDS_CONFIRMATION = "needs_confirmation", "The store matches more than was found."
    BAD_ANSWER = "bad_answer", "The adapter's answer does not fit its orders or does not add up."
    PERMANENT = "permanent", "The adapter raised a permanent error without a code."
    TRANSIENT = "transient", "The adapter raised a transient error without a code."
    UNKNOWN = "unknown", "The adapter raised an error that is not part of its contract."


class Residual(Code):
    """What is known to be left after an erase, or could not be looked at."""

    WAL_ARCHIVE = "wal_archive", "Archived write-ahead logs may still hold the bytes."
    DEAD_TUPLES = "dead_tuples", "Deleted rows stay in the store's files until their space is used again."
    FILE_SYSTEM = "file_system", "Blocks that the file system freed are outside the reach of a scan."
    APPEND_ONLY_LOG = "append_only_log", "The store's command log holds the bytes until it is rewritten."
    SNAPSHOT = "snapshot", "The store's last snapshot holds the bytes until the next one is taken."
    REPLICA_COPY = "replica_copy", "A replica keeps files of its own, which were not looked at."
    WRITE_AHEAD_LOG = "write_ahead_log", "The store's log holds the bytes until its segments are used again."
    PLANNER_SAMPLES = "planner_samples", "The planner's statistics hold samples of values until they are taken anew."
    PROVIDER_COPY = "provider_copy", "The provider keeps copies by its own schedule."
    NOT_PROBEABLE = (
        "not_probeable",
        "A value is too short, or one of too many, to be looked for in files.",
    )
    SHARED_TEXT = "shared_text", "Another live record holds the same bytes, so seeing them says nothing."
    TOLD_ELSEWHERE = "told_elsewhere", "A fact that another source told as well stays, by that source."
    NOT_SCANNABLE = "not_scannable", "A file is compressed or encrypted: what lies in it cannot be seen."


class Refusal(Code):
    """Why the gate refused a write, or a rule refused a command."""

    SOURCE_TOMBSTONED = "source_tombstoned", "The source, or one it was derived from, was forgotten."
    SUBJECT_TOMBSTONED = "subject_tombstoned", "The source is not newer than the subject's erasure."
    KEY_TOMBSTONED = "key_tombstoned", "The source is not newer than the erasure of this key."
    TEXT_TOMBSTONED = "text_tombstoned", "This text was forgotten and is not freshly confirmed."
    TOKEN_TOMBSTONED = "token_tombstoned", "The write shares a distinctive token with what this source lost."
    UNKNOWN_SOURCE = "unknown_source", "The source or an ancestor of it was never registered."
    KEYRING_INCOMPLETE = "keyring_incomplete", "A tombstone was made under a key that is not in the keyring."
    STALE_REVISION = "stale_revision", "The scope has changed since the work was begun."
    ALREADY_BEGUN = "already_begun", "The erasure has begun, so it cannot be cancelled any more."
    JOB_ENDED = "job_ended", "The job has ended; nothing of it can be changed."
    SOURCE_NOT_REVOKED = "source_not_revoked", "A source that has not revoked still hands the data out."
    HELD = "held", "A legal hold covers it: nothing of it is erased before the hold is released."
    HOLD_RELEASED = "hold_released", "The hold has been released already."


class CrashPoint(Code):
    """Places at which a test may kill the process: one for each line that changes state."""

    AFTER_ACCEPT = "after_accept", "The job is written; the caller has no answer yet."
    AFTER_CLAIM = "after_claim", "Units are leased; nothing was called."
    BEFORE_CALL = "before_call", "Orders are built; the adapter is called next."
    AFTER_EFFECT = "after_effect", "The adapter has answered; nothing is written down."
    BEFORE_COMMIT = "before_commit", "Answers are written in an open transaction."
    AFTER_COMMIT = "after_commit", "Answers are committed; the worker has not gone on."
    BEFORE_ANNOUNCE = "before_announce", "The announcement is noted; no message was sent."
    AFTER_ANNOUNCE = "after_announce", "The message was sent."
    AFTER_ORDERS = "after_orders", "Holds are read and orders are written; the adapter is called next."
    BEFORE_SWEEP_COMMIT = "before_sweep_commit", "Ended leases are taken back in an open transaction."
    AFTER_SWEEP = "after_sweep", "Ended leases are taken back."
