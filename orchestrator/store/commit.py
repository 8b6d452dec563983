"""Writing down what a batch came to: receipts of units that are still ours, the rest dropped.

Principles: the owner and the fence are compared in this transaction; a receipt is written once for a
unit; targets are written before anything that rests on them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from orchestrator.domain.retry import Park, RetryIn
from orchestrator.domain.unit import Answered, Failed, Finished, Phase, Receipt, unit_id
from orchestrator.store import tables as t
from orchestrator.store.engine import now_us
from orchestrator.store.jobs import insert_new, micros


def still_ours(connection: sa.Connection, owner: str, answers: Sequence[Answered]) -> list[Answered]:
    """Give the answers whose unit this owner holds under the fence that it claimed."""
    u = t.units
    rows = connection.execute(
        sa.select(u.c.id, u.c.fence)
        .where(
            u.c.id.in_([str(a.claimed.order.unit) for a in answers]),
            u.c.status == "running",
            u.c.lease_owner == owner,
        )
        .with_for_update()
    )
    held = {row.id: row.fence for row in rows}
    return [a for a in answers if held.get(str(a.claimed.order.unit)) == a.claimed.order.fence]


def write(connection: sa.Connection, answers: Sequence[Answered], *, started: datetime, finished: datetime) -> None:
    """Write the answers of units that are ours: targets, tombstones, receipts, attempts, next pages."""
    # A clock that was set back must not make a receipt end before it began.
    finished = max(started, finished)
    done = [a for a in answers if isinstance(a, Finished)]
    insert_new(connection, t.targets, [row for a in done for row in _target_rows(a)])
    insert_new(connection, t.tombstones, [row for a in done for row in _tombstone_rows(a, micros(finished))])
    insert_new(connection, t.windows, [row for a in done for row in _window_rows(a)])
    rows = [_receipt_row(a, a.receipt, micros(started), micros(finished)) for a in done if a.receipt is not None]
    if rows:
        connection.execute(t.receipts.insert(), rows)
    _raise_revisions(connection, done)
    _finish(connection, done)
    _next_pages(connection, done)
    for answer in answers:
        if isinstance(answer, Failed):
            _fail(connection, answer)


def _target_rows(answer: Finished) -> list[dict[str, object]]:
    unit = answer.claimed
    return [
        {
            "job_id": str(unit.order.job),
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


def _window_rows(answer: Finished) -> list[dict[str, object]]:
    unit = answer.claimed
    return [
        {"job_id": str(unit.order.job), "adapter": unit.adapter, "copy_handle": handle, "until_us": micros(until)}
        for handle, until in answer.windows
    ]


def _receipt_row(answer: Finished, receipt: Receipt, started: int, finished: int) -> dict[str, object]:
    unit = answer.claimed
    residuals = json.dumps(sorted(receipt.residuals))
    said: dict[str, object] = {
        "job_id": str(unit.order.job),
        "unit_id": str(unit.order.unit),
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
        "reach": "logical" if unit.phase is Phase.VERIFY else None,
        "residuals": residuals,
    }
    body = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    number = str(unit_id(unit.order.unit, unit.adapter, unit.phase, unit.page, unit.order.round))
    return {**said, "id": number, "body": body, "salt": secrets.token_bytes(16)}


def _raise_revisions(connection: sa.Connection, done: Sequence[Finished]) -> None:
    for answer in done:
        if answer.revision is not None:
            known = sa.func.coalesce(t.jobs.c.revision, 0)
            greatest = sa.case((known > answer.revision, known), else_=answer.revision)
            connection.execute(
                t.jobs.update().where(t.jobs.c.id == str(answer.claimed.order.job)).values(revision=greatest)
            )


def _finish(connection: sa.Connection, done: Sequence[Finished]) -> None:
    if not done:
        return
    connection.execute(
        t.units.update()
        .where(t.units.c.id == sa.bindparam("unit"))
        .values(status="done", lease_owner=None, lease_until_us=None, no_lineage=sa.bindparam("counted"), cursor=None),
        [{"unit": str(a.claimed.order.unit), "counted": a.no_lineage} for a in done],
    )


def _next_pages(connection: sa.Connection, done: Sequence[Finished]) -> None:
    """Open the page after a find or revoke that has more to tell, or more known targets to look from."""
    going = [a for a in done if a.cursor is not None or (a.claimed.phase is Phase.FIND and a.claimed.more_known)]
    if not going:
        return
    due = connection.execute(sa.select(now_us(connection))).scalar_one()
    insert_new(
        connection,
        t.units,
        [
            {
                "id": str(unit_id(a.claimed.order.job, a.claimed.adapter, a.claimed.phase, page, round_)),
                "job_id": str(a.claimed.order.job),
                "adapter": a.claimed.adapter,
                "phase": a.claimed.phase.value,
                "page": page,
                "round": round_,
                "find_pass": a.claimed.find_pass,
                "known_page": a.claimed.known_page + (a.cursor is None),
                "cursor": a.cursor,
                "next_attempt_at_us": due,
            }
            for a in going
            for page, round_ in [(a.claimed.page + 1, a.claimed.order.round)]
        ],
    )


def _fail(connection: sa.Connection, answer: Failed) -> None:
    order = answer.claimed.order
    now = connection.execute(sa.select(now_us(connection))).scalar_one()
    connection.execute(
        t.attempts.insert().values(
            unit_id=str(order.unit), attempt=order.attempt, fence=order.fence, at_us=now, error_code=answer.code.value
        )
    )
    values: dict[str, object] = {
        "lease_owner": None,
        "lease_until_us": None,
        "last_error_code": answer.code.value,
    }
    match answer.then:
        case RetryIn(delay=delay):
            values |= {"status": "pending", "next_attempt_at_us": now + delay // timedelta(microseconds=1)}
        case Park(reason=reason):
            values |= {"status": "parked", "parked": reason.value}
    connection.execute(t.units.update().where(t.units.c.id == str(order.unit)).values(**values))
