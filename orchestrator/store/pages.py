"""Pages of targets: the targets of one answer lie on the page of the unit that answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from orchestrator.store import tables as t
from orchestrator.store.among import among

OF_ITEMS: Final = 2**30
"""Pages of held items are numbered from here downwards, the others from 0 upwards."""
NOWHERE: Final = ""
"""The adapter of a unit that looks from no known target; workers of release 0001 write NULL and mean any."""
_g = t.targets.c
JobRound = tuple[str, int]
_PAGES: Final = (
    sa.select(_g.job_id, _g.adapter, _g.page, _g.find_pass, _g.item_ref)
    .distinct()
    .where(among(_g.job_id), _g.round == sa.bindparam("round"))
    .order_by(_g.job_id, _g.adapter, _g.page)
)


class Page(NamedTuple):
    """A page of targets."""

    adapter: str
    number: int
    find_pass: int
    item: str | None


def pages(connection: sa.Connection, jobs: Sequence[JobRound]) -> Mapping[str, list[Page]]:
    """Give the pages of targets of each job in its round, in order."""
    found: dict[str, list[Page]] = defaultdict(list)
    for round_, ids in by_round(jobs):
        for job, *page in connection.execute(_PAGES, {"ids": ids, "round": round_}).all():
            found[job].append(Page(*page))
    return found


def by_round(jobs: Sequence[JobRound]) -> list[tuple[int, list[str]]]:
    """Put jobs together that are in the same round."""
    grouped: dict[int, list[str]] = defaultdict(list)
    for job, round_ in jobs:
        grouped[round_].append(job)
    return sorted(grouped.items())
