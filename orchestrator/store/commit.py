"""Writing down what a batch came to: receipts of units that are still ours, the rest dropped.

Principles: the owner and the fence are compared in this transaction; a receipt is written once for a
unit; targets are written before anything that rests on them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode
from orchestrator.domain.job import Store
from orchestrator.domain.retry import Park, RetryIn
from orchestrator.domain.states import OVER
from orchestrator.domain.unit import Answered, Claimed, Failed, Finished, Phase, Receipt, unit_id
from orchestrator.store import bulk, epochs, follow, windows
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import micros, read_now

_u, _j, _a = t.units.c, t.jobs.c, t.attempts.c
_BODY: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_REVOKED = (
    "(job_id, adapter, round, kind, handle, version) DO UPDATE SET page = excluded.page, find_pass = 0, "
    "item_ref = NULL WHERE deletion_targets.find_pass <> 0"
)
_OURS: Final = (
    sa.select(_u.id, _u.fence)
    .where(among(_u.id), _u.status == t.RUNNING, _u.lease_owner == sa.bindparam("owner"))
    .order_by(_u.id)
    .with_for_update()
)
_STATES: Final = sa.select(_j.id, _j.state).where(among(_j.id)).order_by(_j.id).with_for_update()
_LOST: Final = sa.select(_a.unit_id).where(among(_a.unit_id), _a.error_code == ErrorCode.LEASE_ENDED.value)
_REVISIONS: Final = sa.select(_j.id, _j.revision).where(among(_j.id)).order_by(_j.id).with_for_update()
_FREE = {"lease_owner": None, "lease_until_us": None, "deadline_us": None}
_END: Final = t.units.update().where(among(_u.id)).values(status="done", cursor=None, **_FREE)


def still_ours(connection: sa.Connection, owner: str, answers: Sequence[Answered]) -> list[Answered]:
    """Give the answers whose unit this owner holds under the fence that it claimed.

    What a store answered before it was restored says nothing of what is there now.
    """
    keys = [a.claimed.order.key for a in answers]
    held = {row.id: row.fence for row in connection.execute(_OURS, {"ids": keys, "owner": owner}).all()}
    now = epochs.of_all(connection)
    same = [a for a in answers if now.get(a.claimed.adapter, epochs.FIRST) == a.claimed.epoch]
    return [a for a in same if held.get(a.claimed.order.key) == a.claimed.order.fence]


def write(
    connection: sa.Connection,
    answers: Sequence[Answered],
    stores: Sequence[Store],
    *,
    started: datetime,
    finished: datetime,
) -> None:
    """Write the answers of units that are ours: targets, tombstones, receipts, attempts, next pages."""
    # A clock that was set back must not make a receipt end before it began.
    began, ended = micros(started), micros(max(started, finished))
    answers = _without_traces(connection, answers)
    done = [a for a in answers if isinstance(a, Finished)]
    failed = [a for a in answers if isinstance(a, Failed)]
    insert = bulk.insert
    _write_targets(connection, done)
    insert(
        connection,
        t.tombstones,
        [row for a in done for row in _tombstone_rows(a, ended)],
        conflict=bulk.KEEP,
    )
    insert(connection, t.fingerprints, [row for a in done for row in _print_rows(a)], conflict=bulk.KEEP)
    insert(connection, t.windows, [row for a in done for row in _window_rows(a)], conflict=bulk.KEEP)
    windows.close(connection, [a for a in done if a.claimed.phase is Phase.CLOSE], finished)
    given = [(a, a.receipt) for a in done if a.receipt is not None]
    insert(connection, t.receipts, [_receipt_row(a.claimed, r, began, ended) for a, r in given])
    _raise_revisions(connection, done)
    if done:
        connection.execute(_END, {"ids": [a.claimed.order.key for a in done]})
    counted = [{"id": a.claimed.order.key, "no_lineage": a.no_lineage} for a in done if a.no_lineage]
    bulk.update(connection, t.units, "id", counted)
    follow.next_pages(connection, done, stores)
    follow.after_holds(connection, done, stores)
    _fail(connection, failed)
    _keep_deadlines(connection, answers)


def _without_traces(connection: sa.Connection, answers: Sequence[Answered]) -> Sequence[Answered]:
    """Leave out of late answers what goes with the end of a job, where the job has ended without their store."""
    done = [a for a in answers if isinstance(a, Finished) and (a.claimed.phase is Phase.FIND or a.claimed.item)]
    if not any(a.fingerprints or a.cursor for a in done):
        return answers
    # Those of the whole batch, as `advance` locks them: two that lock in another order wait for each other.
    rows = connection.execute(_STATES, {"ids": [str(a.claimed.order.job) for a in answers]}).all()
    over = {row.id for row in rows if row.state in OVER}
    late = {a.claimed.order.key for a in done if str(a.claimed.order.job) in over}
    return [
        replace(a, fingerprints=(), cursor=None) if isinstance(a, Finished) and a.claimed.order.key in late else a
        for a in answers
    ]


def _write_targets(connection: sa.Connection, done: Sequence[Finished]) -> None:
    """Write down what was named. What a source revokes is its own page's, even if find has named it before."""
    for conflict, chosen in (
        (_REVOKED, [a for a in done if a.claimed.phase is Phase.REVOKE]),
        (bulk.KEEP, [a for a in done if a.claimed.phase is not Phase.REVOKE]),
    ):
        bulk.insert(connection, t.targets, [row for a in chosen for row in _target_rows(a)], conflict=conflict)


def _target_rows(answer: Finished) -> list[dict[str, object]]:
    unit = answer.claimed
    job = str(unit.order.job)
    return [
        {
            "job_id": job,
            "adapter": unit.adapter,
            "kind": target.kind,
            "handle": target.id,
            "version": target.version,
            "derived_of": target.derived_of,
            "page": unit.page,
            "round": unit.order.round,
            "find_pass": unit.find_pass,
        }
        for target in answer.targets
    ]


def _tombstone_rows(answer: Finished, at: int) -> list[dict[str, object]]:
    order = answer.claimed.order
    return [
        {
            "tenant": order.scope.tenant,
            "key_id": tombstone.key_id,
            "mac": tombstone.mac,
            "kind": tombstone.kind.value,
            "cut_off": tombstone.cut_off,
            "job_id": str(order.job),
            "reason_code": answer.claimed.reason.value,
            "created_at_us": at,
        }
        for tombstone in answer.tombstones
    ]


def _print_rows(answer: Finished) -> list[dict[str, object]]:
    job = str(answer.claimed.order.job)
    return [{"job_id": job, "roll": print_.roll, "mac": print_.mac} for print_ in answer.fingerprints]


def _window_rows(answer: Finished) -> list[dict[str, object]]:
    unit = answer.claimed
    return [
        {"job_id": str(unit.order.job), "adapter": unit.adapter, "copy_handle": handle, "until_us": micros(until)}
        for handle, until in answer.windows
    ]


def _receipt_row(unit: Claimed, receipt: Receipt, started: int, finished: int) -> dict[str, object]:
    said: dict[str, object] = {
        "job_id": str(unit.order.job),
        "unit_id": unit.order.key,
        "adapter": unit.adapter,
        "phase": unit.phase.value,
        "page": unit.page,
        "round": unit.order.round,
        "attempt": unit.order.attempt,
        "fence": unit.order.fence,
        "started_at_us": started,
        "finished_at_us": finished,
        "outcome": receipt.outcome.value,
        "expected": receipt.expected,
        "erased": receipt.erased,
        "already_absent": receipt.already_absent,
        "scheduled": receipt.scheduled,
        "extra": receipt.extra,
        "remaining": receipt.remaining,
        "reach": None if receipt.reach is None else receipt.reach.value,
        "scrub_run_id": receipt.scrub_run,
        "residuals": json.dumps(sorted(receipt.residuals)),
    }
    body = _BODY.encode(said).encode()
    number = str(unit_id(unit.order.unit, unit.adapter, unit.phase, unit.page, unit.order.round))
    return {**said, "id": number, "body": body, "salt": secrets.token_bytes(16)}


def _raise_revisions(connection: sa.Connection, done: Sequence[Finished]) -> None:
    """Keep the highest revision that any source of a job has told."""
    told: dict[str, int] = {}
    for a in done:
        if a.revision is not None:
            job = str(a.claimed.order.job)
            told[job] = max(a.revision, told.get(job, 0))
    if not told:
        return
    rows = connection.execute(_REVISIONS, {"ids": told}).all()
    bulk.update(
        connection, t.jobs, "id", [{"id": row.id, "revision": max(row.revision or 0, told[row.id])} for row in rows]
    )


def _fail(connection: sa.Connection, failed: Sequence[Failed]) -> None:
    if not failed:
        return
    now = read_now(connection)
    orders = [(a, a.claimed.order) for a in failed]
    attempts = [
        {"unit_id": o.key, "attempt": o.attempt, "fence": o.fence, "at_us": now, "error_code": a.code.value}
        for a, o in orders
    ]
    bulk.insert(connection, t.attempts, attempts)
    again, parked = [], []
    for answer, order in orders:
        row = {"id": order.key, "last_error_code": answer.code.value, **_FREE}
        match answer.then:
            case RetryIn(delay=delay):
                due = now + delay // timedelta(microseconds=1)
                again.append({**row, "status": "pending", "next_attempt_at_us": due})
            case Park(reason=reason):
                parked.append({**row, "status": "parked", "parked": reason.value})
    bulk.update(connection, t.units, "id", again)
    bulk.update(connection, t.units, "id", parked)


def _keep_deadlines(connection: sa.Connection, answers: Sequence[Answered]) -> None:
    """Let the deadline of a unit stand where a call of it may still act until then, so that a hold waits for it.

    That is a call that was left behind, by a clock that was set back even before its deadline, and the call of an
    earlier claim that was lost: it knows nothing of an item that is held since. The later claim has the later deadline.
    """
    until = {a.claimed.order.key: micros(a.claimed.order.deadline) for a in answers}
    acting = {a.claimed.order.key for a in answers if isinstance(a, Failed) and a.code is ErrorCode.DEADLINE_PASSED}
    if again := [a.claimed.order.key for a in answers if a.claimed.order.fence > 1]:
        acting.update(connection.execute(_LOST, {"ids": again}).scalars())
    bulk.update(connection, t.units, "id", [{"id": unit, "deadline_us": until[unit]} for unit in acting])
