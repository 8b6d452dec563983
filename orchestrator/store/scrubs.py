"""Scrubs of a store's files, one at a time for each store, and what a scan has to look for afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, Residual
from orchestrator.domain.contract import Fingerprint, Scrubbed
from orchestrator.domain.ports import Wanted
from orchestrator.domain.unit import Phase
from orchestrator.ids import uuid7
from orchestrator.store import bulk
from orchestrator.store import tables as t
from orchestrator.store.clock import now_us, read_now

_s = t.scrub_runs.c
_OPEN = _s.finished_at_us.is_(None)


def begin(connection: sa.Connection, store: str, owner: str, lease_us: int) -> str | None:
    """Begin a scrub under a lease and give its id; None while another one of the same files runs."""
    fail_ended(connection)
    now, run = read_now(connection), str(uuid7())
    new = {"id": run, "store": store, "lease_owner": owner, "lease_until_us": now + lease_us, "started_at_us": now}
    bulk.insert(connection, t.scrub_runs, [new], conflict="(store) WHERE finished_at_us IS NULL DO NOTHING")
    mine = sa.select(_s.id).where(_s.id == run)
    return connection.execute(mine).scalar_one_or_none()


def renew(connection: sa.Connection, owner: str, lease_us: int) -> None:
    """Extend the lease of a scrub that `owner` runs."""
    held = t.scrub_runs.update().where(_s.lease_owner == owner, _OPEN)
    connection.execute(held.values(lease_until_us=now_us() + lease_us))


def finish(connection: sa.Connection, run: str, outcome: Scrubbed, *, control_found: bool) -> bool:
    """Write down what a scrub came to; False where its lease had ended and somebody has failed it."""
    ended = {"finished_at_us": read_now(connection), "outcome": outcome.value, "control_found": int(control_found)}
    # A lease that has ended is no lease, even where nobody has come by yet.
    fail_ended(connection)
    return connection.execute(t.scrub_runs.update().where(_s.id == run, _OPEN).values(**ended)).rowcount == 1


def fail_ended(connection: sa.Connection) -> None:
    """Fail the scrubs whose process has died."""
    now = read_now(connection)
    ended = {"finished_at_us": now, "outcome": Scrubbed.FAILED.value, "error_code": ErrorCode.LEASE_ENDED.value}
    connection.execute(t.scrub_runs.update().where(_OPEN, _s.lease_until_us <= now).values(**ended))


def wanted(connection: sa.Connection, jobs: Sequence[UUID]) -> Mapping[UUID, Wanted]:
    """Give the fingerprints of each job, and whether some of its values have none."""
    ids = [str(job) for job in jobs]
    f, r = t.fingerprints.c, t.receipts.c
    prints: dict[str, set[Fingerprint]] = {job: set() for job in ids}
    for row in connection.execute(sa.select(f.job_id, f.roll, f.mac).where(f.job_id.in_(ids))):
        prints[row.job_id].add(Fingerprint(row.roll, row.mac))
    told = sa.select(r.job_id).where(r.job_id.in_(ids), r.phase == Phase.REVOKE.value)
    unprobed = set(connection.execute(told.where(r.residuals.contains(f'"{Residual.NOT_PROBEABLE.value}"'))).scalars())
    return {job: Wanted(prints=frozenset(prints[str(job)]), unprobed=str(job) in unprobed) for job in jobs}
