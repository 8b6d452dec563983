"""What a person may do to a job: have parked units tried again, cancel it, waive a store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import sqlalchemy as sa

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import Role
from orchestrator.domain.errors import InvalidRequest, JobNotFound, RuleRefused
from orchestrator.domain.job import Store, Waiver
from orchestrator.domain.states import OVER, JobState
from orchestrator.domain.unit import Phase
from orchestrator.store import bulk, health
from orchestrator.store import tables as t
from orchestrator.store.clock import micros, read_now

_u, _j = t.units.c, t.jobs.c
_ASKED = sa.select(_u.phase).where(_u.job_id == sa.bindparam("of"), _u.adapter == sa.bindparam("by"))
_WINDOWS = sa.select(sa.func.count()).where(
    t.windows.c.job_id == sa.bindparam("of"),
    t.windows.c.adapter == sa.bindparam("by"),
    t.windows.c.closed_at_us.is_(None),
)


def retry(connection: sa.Connection, job: str, tenant: str | None) -> int:
    """Make every parked or waiting unit of a job due now, with its attempts counted afresh; give how many.

    Of a verified job those are the looks for its windows: what an optional store has left undone is not taken up.
    """
    row = _locked(connection, job, tenant, ended=OVER - {JobState.VERIFIED})
    waits = (_u.job_id == job) & ((_u.status == "parked") | ((_u.status == t.PENDING) & (_u.attempts > 0)))
    if row.state == JobState.VERIFIED.value:
        waits &= _u.phase == Phase.CLOSE.value
    query = sa.select(_u.adapter).distinct().where(waits)
    health.try_again(connection, list(connection.execute(query).scalars()))
    again = t.units.update().where(waits)
    again = again.values(status="pending", parked=None, attempts=0, next_attempt_at_us=read_now(connection))
    return connection.execute(again).rowcount


def cancel(connection: sa.Connection, job: str, tenant: str | None) -> None:
    """Take away a job's units, which locks out a claim at the same moment; the caller moves the job.

    Raises `RuleRefused` once a unit of it was ever claimed.
    """
    row = _locked(connection, job, tenant)
    begun = sa.select(sa.func.count()).where(_u.job_id == job, _u.fence > 0)
    if row.state != JobState.REQUESTED.value:
        raise RuleRefused(Refusal.ALREADY_BEGUN)
    connection.execute(t.units.delete().where(_u.job_id == job, _u.fence == 0))
    # A claim that came first has raised the fence of its unit, so the unit is still there.
    if connection.execute(begun).scalar_one():
        raise RuleRefused(Refusal.ALREADY_BEGUN)


def waive(
    connection: sa.Connection,
    job: str,
    waiver: Waiver,
    *,
    tenant: str | None,
    at: datetime,
    stores: Sequence[Store],
) -> bool:
    """Let a job pass one store by name; give whether that is new.

    Raises `InvalidRequest` for a store that is not enabled and that the job has asked for nothing, `RuleRefused` where
    the job has ended or a source has not revoked.
    """
    row = _locked(connection, job, tenant, ended=OVER - {JobState.VERIFIED})
    asked = set(connection.execute(_ASKED, {"of": job, "by": waiver.adapter}).scalars())
    role = next((store.role for store in stores if store.name == waiver.adapter), None)
    # A store that has been taken out of the configuration since is known by what the job has asked it for.
    if role is None and not asked:
        message = f"there is no adapter of that name; enabled are: {', '.join(s.name for s in stores)}"
        raise InvalidRequest(message, field="adapter")
    if (
        row.state == JobState.VERIFIED.value
        and not connection.execute(_WINDOWS, {"of": job, "by": waiver.adapter}).scalar()
    ):
        raise RuleRefused(Refusal.JOB_ENDED)
    if row.state == JobState.REQUESTED.value and (role is Role.SOURCE or Phase.REVOKE in asked):
        raise RuleRefused(Refusal.SOURCE_NOT_REVOKED)
    known = sa.select(t.waivers).where(t.waivers.c.job_id == job, t.waivers.c.adapter == waiver.adapter)
    if connection.execute(known).one_or_none() is not None:
        return False
    told = {"adapter": waiver.adapter, "reason_code": waiver.reason.value, "granted_by_ref": waiver.granted_by_ref}
    bulk.insert(connection, t.waivers, [{"job_id": job, **told, "at_us": micros(at)}])
    return True


def _locked(connection: sa.Connection, job: str, tenant: str | None, ended: Collection[str] = OVER) -> sa.Row[str, str]:
    """Lock a job that may still be changed; a missing one and another tenant's raise the same `JobNotFound`."""
    row = connection.execute(sa.select(_j.state, _j.tenant).where(_j.id == job).with_for_update()).one_or_none()
    if row is None or (tenant is not None and row.tenant != tenant):
        raise JobNotFound
    if row.state in ended:
        raise RuleRefused(Refusal.JOB_ENDED)
    return row
