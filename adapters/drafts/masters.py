"""Which reports others may be made from: those alone that could be published now, in that very scope.

Principle: a report is current or it is none. What has changed since its job was submitted may be
in it still, so nothing new is made from it, and nothing that was is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa

from adapters.drafts.schema import is_here
from adapters.drafts.step import REPORT, State, Step
from adapters.drafts.tables import draft_jobs, drafts
from adapters.drafts.validity import is_current
from adapters.memory.batch import columns, look_up
from adapters.memory.engine import reading
from adapters.memory.facts import place_of, revision
from orchestrator import Clock, Scope, Target

_REPORT: Final = columns(tenant=str, user_id=str, project=str, handle=str)


class DraftMasters:
    """Reports of draft jobs as the records that other things are made from."""

    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        """Read that database, which stays the caller's to close, by that clock."""
        self._engine, self._clock = engine, clock

    def active(self, scope: Scope, records: Collection[Target]) -> dict[Target, int]:
        """Give those of the records that are current reports of exactly this scope, each with the scope's revision.

        A report has one version, which is 0. Raises `Transient` where the database does not answer.
        """
        place = tuple(place_of(scope).values())
        asked = {t for t in records if (t.kind, t.version) == (REPORT, 0)}
        with reading(self._engine, [scope.tenant]) as connection:
            if not asked or not is_here(connection):
                return {}
            now, rev = self._clock.now().timestamp(), revision(connection, scope)
            rows = look_up(connection, _REPORT, sorted((*place, t.id) for t in asked), _published)
        current = {row.handle for row in rows if is_current(row, rev, now)}
        return {target: rev for target in asked if target.id in current}


def _published(given: sa.FromClause) -> sa.Select[Any]:
    d, j, g = drafts.c, draft_jobs.c, given.c
    named = (d.tenant == g.tenant) & (d.handle == g.handle) & (d.user_id == g.user_id) & (d.project == g.project)
    of_job = (j.tenant == d.tenant) & (j.handle == d.job)
    joined = given.join(drafts, named).join(draft_jobs, of_job)
    published = (d.step == Step.PUBLISH.value) & (j.state == State.PUBLISHED.value)
    return sa.select(d.handle, j.memory_rev, j.memory_expires).select_from(joined).where(published)
