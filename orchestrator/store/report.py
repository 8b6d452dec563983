"""Reading what a report rests on: one moment of the control database, in counts, codes and times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, HoldReason, Parked, WaiverReason
from orchestrator.domain.job import JobView, Purpose
from orchestrator.domain.unit import Phase
from orchestrator.service.outstanding import HoldOn, Undone
from orchestrator.service.report import Facts, WaiverView
from orchestrator.store import tables as t
from orchestrator.store import views
from orchestrator.store.clock import moment
from orchestrator.store.holds import waits_for_hold

_u, _j, _h, _g, _w = t.units.c, t.jobs.c, t.holds.c, t.targets.c, t.waivers.c


def read(database: sa.Engine, job: str, *, tenant: str | None = None) -> Facts:
    """Give what is written down of a job; a missing one and another tenant's raise the same `JobNotFound`."""
    with database.begin() as connection:
        _freeze(connection)
        view = views.view(connection, job, tenant)
        return Facts(
            job=view,
            receipts=tuple(views.receipts(connection, job)),
            undone=tuple(_undone(connection, job)),
            waivers=tuple(_waivers(connection, job)),
            revoked=_revoked(connection, view),
            no_lineage=views.no_lineage(connection, job),
        )


def undone(database: sa.Engine, job: str, *, tenant: str | None = None) -> tuple[JobView, Sequence[Undone]]:
    """Give a job, and its units that are not done, by store and phase."""
    with database.begin() as connection:
        _freeze(connection)
        return views.view(connection, job, tenant), _undone(connection, job)


def _freeze(connection: sa.Connection) -> None:
    """Let all statements see one moment: else a unit could end between the receipts and the units."""
    if connection.dialect.name == "postgresql":  # SQLite does so by itself
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _undone(connection: sa.Connection, job: str) -> list[Undone]:
    held = sa.case((waits_for_hold(), 1), else_=0)
    mine = (
        sa.select(
            *(_u.adapter, _u.phase, _u.status, _u.parked, _u.last_error_code, _u.attempts),
            sa.case((_u.status == t.PENDING, held), else_=0).label("held"),
            # A store that is left alone for a while is asked for nothing before that is over.
            sa.case(
                (t.health.c.open_until_us > _u.next_attempt_at_us, t.health.c.open_until_us),
                else_=_u.next_attempt_at_us,
            ).label("due"),
        )
        .join(t.jobs, _j.id == _u.job_id)
        .outerjoin(t.health, t.health.c.adapter == _u.adapter)
        .where(_u.job_id == job, _u.status != t.DONE)
        .subquery("mine")
    )
    c = mine.c
    kinds = (c.adapter, c.phase, c.status, c.parked, c.last_error_code, c.held)
    query = sa.select(
        *kinds,
        sa.func.count().label("units"),
        sa.func.max(c.attempts).label("attempts"),
        sa.func.min(c.due).label("due"),
    )
    holds = _holds(connection, job)
    return [
        Undone(
            adapter=row.adapter,
            phase=Phase(row.phase),
            units=row.units,
            attempts=row.attempts,
            due_at=None if row.due >= t.DUE_NEVER else moment(row.due),
            running=row.status == "running",
            held=bool(row.held),
            parked=None if row.parked is None else Parked(row.parked),
            last_error=None if row.last_error_code is None else ErrorCode(row.last_error_code),
            holds=tuple(holds[row.adapter, row.phase]) if row.held else (),
        )
        for row in connection.execute(query.group_by(*kinds).order_by(*kinds))
    ]


def _holds(connection: sa.Connection, job: str) -> dict[tuple[str, str], list[HoldOn]]:
    """Give the holds that cover units of each store and phase which would be due without them."""
    query = (
        sa.select(_u.adapter, _u.phase, _h.id, _h.reason_code)
        .distinct()
        .join(t.jobs, _j.id == _u.job_id)
        .join(t.holds, (_h.tenant == _j.tenant) & (_h.subject_ref == _j.subject_ref) & _h.released_at_us.is_(None))
        .where(_u.job_id == job, _u.status == t.PENDING, _j.purpose == Purpose.ERASE.value)
        .where(_h.item_ref.is_(None) | (_h.item_ref == _u.item_ref))
        .order_by(_u.adapter, _u.phase, _h.id)
    )
    found: dict[tuple[str, str], list[HoldOn]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.adapter, row.phase].append(HoldOn(id=row.id, reason=HoldReason(row.reason_code)))
    return found


def _waivers(connection: sa.Connection, job: str) -> list[WaiverView]:
    rows = connection.execute(sa.select(t.waivers).where(_w.job_id == job).order_by(_w.at_us, _w.adapter))
    return [
        WaiverView(
            adapter=row.adapter,
            reason=WaiverReason(row.reason_code),
            granted_by_ref=row.granted_by_ref,
            at=moment(row.at_us),
        )
        for row in rows
    ]


def _revoked(connection: sa.Connection, job: JobView) -> dict[str, int]:
    """Count what each source has named; one that is asked again for a freed item names all the others once more."""
    query = sa.select(_g.adapter, sa.func.count()).where(
        _g.job_id == job.id, _g.round == job.round, _g.find_pass == sa.literal_column("0")
    )
    return {row[0]: row[1] for row in connection.execute(query.group_by(_g.adapter))}
