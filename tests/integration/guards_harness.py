"""Rows of the control database, and statements of which each breaks one guard of its schema and no other."""

from __future__ import annotations

from dataclasses import dataclass

JOB, OTHER = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"


def job(ident: str, state: str, **changes: object) -> str:
    times = ["revoked_at_us", "cleanup_at_us", "verified_at_us", "completed_at_us"]
    states = ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]
    passed = ["cancelled_at_us"] if state == "cancelled" else times[: states.index(state)]
    ended = state in {"verified", "completed", "cancelled"}
    row: dict[str, object] = {
        "id": ident,
        "tenant": "tenant-a",
        "user_id": None if ended else "anna",
        "project": None if ended else "trips",
        "selector_kind": "key",
        "selector_value": None if ended else "passport",
        "subject_ref": "s",
        "selector_ref": "v",
        "trigger_kind": "request",
        "reason_code": "user_request",
        "requested_by_ref": "r",
        "idempotency_ref": ident,
        "payload_sha256": "p",
        "state": state,
        "requested_at_us": 1,
        **dict.fromkeys(passed, 2),
    }
    return insert("deletion_jobs", row | changes)


def move(old: str | None, new: str) -> str:
    return insert("job_transitions", {"job_id": JOB, "from_state": old, "to_state": new, "at_us": 1, "worker": "w"})


def unit(ident: str, page: int, **changes: object) -> str:
    row: dict[str, object] = {"id": ident, "job_id": JOB, "adapter": "cache", "phase": "erase", "page": page}
    return insert("deletion_units", {**row, "status": "done", "next_attempt_at_us": 1, **changes})


def receipt(ident: str = "receipt-2", unit_id: str = "unit-2", page: int = 2, /, **changes: object) -> str:
    row: dict[str, object] = {"id": ident, "unit_id": unit_id, "job_id": JOB, "adapter": "cache", "page": page}
    said = {"phase": "erase", "outcome": "erased", "round": 1, "attempt": 1, "fence": 1, "body": "b", "salt": "s"}
    counts = {"expected": 2, "erased": 1, "already_absent": 1, "scheduled": 0, "extra": 0, "remaining": 0}
    return insert("deletion_receipts", row | said | counts | {"started_at_us": 1, "finished_at_us": 2} | changes)


def insert(table: str, row: dict[str, object]) -> str:
    values = ["NULL" if v is None else str(v) if isinstance(v, int) else f"'{v}'" for v in row.values()]
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(values)})"  # noqa: S608 - rows of this file


ROWS = [
    job(JOB, "derived_cleanup"),
    move(None, "requested"),
    move("requested", "source_revoked"),
    move("source_revoked", "derived_cleanup"),
    unit("unit-1", 1),
    unit("unit-2", 2),
    receipt("receipt-1", "unit-1", 1),
]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A rule of the schema, a statement that breaks it, and the words in which it is refused."""

    name: str
    breaks: str
    says: str
    trigger: tuple[str, str, str] | None = None  # table, name on SQLite, name on PostgreSQL
    index: str | None = None
    unique: tuple[str, tuple[str, ...]] | None = None  # table, and what is taken out of its text on SQLite


def append_only(table: str, short: str, verb: str, breaks: str) -> Guard:
    trigger = (table, f"{short}_no_{verb}", f"{short}_append_only")
    return Guard(name=f"{short} know no {verb}", breaks=breaks, says="append-only", trigger=trigger)


def ids_kept(state: str, **kept: object) -> Guard:
    return Guard(
        name=f"no {next(iter(kept))} in a job that is {state}",
        breaks=job(OTHER, state, **kept),
        says="user_id IS NULL AND project IS NULL AND selector_value IS NULL",
    )


def counts(name: str, says: str, **changes: object) -> Guard:
    return Guard(name=name, breaks=receipt(**changes), says=says)


MOVES = (
    "UPDATE deletion_jobs SET state = 'verified', verified_at_us = 3, "
    "user_id = NULL, project = NULL, selector_value = NULL WHERE state = 'derived_cleanup'"
)
REVOKED = {"phase": "revoke", "outcome": "revoked"}
NOTHING = {"outcome": "nothing_found", "erased": 0}
SCHEDULED = {"outcome": "scheduled", "scheduled": 1, "remaining": 1}
SEEN = {"phase": "verify", "erased": 0, "already_absent": 0}
GUARDS = [
    Guard(
        name="a job moves by a logged move",
        breaks=MOVES,
        says="illegal state move",
        trigger=("deletion_jobs", "job_state_needs_logged_move", "job_state_needs_logged_move"),
    ),
    append_only(
        "deletion_receipts", "receipts", "update", "UPDATE deletion_receipts SET erased = 2, already_absent = 0"
    ),
    append_only("deletion_receipts", "receipts", "delete", "DELETE FROM deletion_receipts"),
    append_only("job_transitions", "transitions", "update", "UPDATE job_transitions SET worker = 'another'"),
    append_only(
        "job_transitions", "transitions", "delete", "DELETE FROM job_transitions WHERE to_state = 'derived_cleanup'"
    ),
    Guard(
        name="no move but those of the table",
        breaks=move("derived_cleanup", "completed"),
        says="'source_revoked>derived_cleanup'",
    ),
    Guard(
        name="each state occurs once",
        breaks=move(None, "requested"),
        says="job_id, to_state",
        unique=(
            "job_transitions",
            (
                "PRIMARY KEY (job_id, to_state),",
                "FOREIGN KEY (job_id, from_state) REFERENCES job_transitions (job_id, to_state),",
            ),
        ),
    ),
    Guard(
        name="no state has two that follow it",
        breaks=move("requested", "cancelled"),
        says="job_id, from_state",
        index="ux_transitions_no_fork",
    ),
    Guard(
        name="one job for an idempotency key",
        breaks=job(OTHER, "requested", idempotency_ref=JOB),
        says="tenant, idempotency_ref",
        index="ux_jobs_idempotency",
    ),
    Guard(
        name="one unit in a place",
        breaks=unit("unit-3", 1),
        says="job_id, adapter, phase, page, round",
        unique=("deletion_units", ("UNIQUE (job_id, adapter, phase, page, round),",)),
    ),
    Guard(
        name="one receipt for a unit",
        breaks=receipt("receipt-2", "unit-1", 2),
        says="UNIQUE unit_id",
        unique=("deletion_receipts", ("UNIQUE REFERENCES deletion_units (id)",)),
    ),
    Guard(
        name="one receipt in a place",
        breaks=receipt("receipt-2", "unit-2", 1),
        says="job_id, adapter, phase, page, round",
        unique=("deletion_receipts", ("UNIQUE (job_id, adapter, phase, page, round),",)),
    ),
    *(
        ids_kept(state, **{column: "raw"})
        for state in ("verified", "completed", "cancelled")
        for column in ("user_id", "project", "selector_value")
    ),
    counts("erased adds up", "outcome <> 'erased'", erased=2),
    counts("erased adds up with what arrived", "outcome <> 'erased'", extra=1),
    counts("erased has erased something", "outcome <> 'erased'", erased=0, already_absent=2),
    counts("erased leaves nothing", "outcome <> 'erased'", remaining=1),
    counts("nothing found has erased nothing", "outcome <> 'nothing_found'", **NOTHING | {"erased": 1, "expected": 1}),
    counts("nothing found adds up", "outcome <> 'nothing_found'", **NOTHING),
    counts("nothing found leaves nothing", "outcome <> 'nothing_found'", **NOTHING, already_absent=2, remaining=1),
    counts("scheduled adds up", "outcome <> 'scheduled'", **SCHEDULED),
    counts("scheduled leaves what is scheduled", "outcome <> 'scheduled'", **SCHEDULED | {"remaining": 2}, expected=3),
    counts("scheduled names a copy", "outcome <> 'scheduled'", **SCHEDULED | {"scheduled": 0, "remaining": 0}),
    counts("only scheduled has copies that go later", "scheduled = 0", scheduled=1),
    counts("absent leaves nothing", "outcome <> 'absent'", **SEEN, outcome="absent", remaining=1),
    counts("present leaves something", "outcome <> 'present'", **SEEN, outcome="present"),
    counts("nothing below zero was expected", "expected >= 0", **REVOKED, expected=-1),
    counts("nothing below zero was erased", "erased >= 0", **REVOKED, erased=-1),
    counts("nothing below zero was absent", "already_absent >= 0", **REVOKED, already_absent=-1),
    counts("nothing below zero has arrived", "extra >= 0", **REVOKED, extra=-1),
    counts("nothing below zero remains", "remaining >= 0", **REVOKED, remaining=-1),
    counts("an outcome is one of its phase", "outcome = 'closed'", phase="revoke"),
    counts("a receipt ends after it began", "finished_at_us >= started_at_us", finished_at_us=0),
]
