"""Pages of known targets follow each other within a job, whatever other jobs of the batch have found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from orchestrator import EraseOrder, Reason, Role, Selector, SelectorKind, Target
from orchestrator.domain.job import Store
from orchestrator.domain.unit import Claimed, Finished, Phase, unit_id
from orchestrator.store import bulk, follow
from orchestrator.store import tables as t
from tests.fakes import ANNA, Bench, bench


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def found_in(stage: Bench, *stores: str) -> Finished:
    """File a job whose sources have named targets in these stores; give its find in the first of them, done."""
    job = UUID(stage.file())
    unit = unit_id(job, stores[0], Phase.FIND, 1, 1)
    place = {"job_id": str(job), "page": 0, "round": 1, "find_pass": 0}
    targets = [{**place, "adapter": store, "kind": "fact", "handle": f"{store}-1", "version": 0} for store in stores]
    row = {**place, "id": str(unit), "tenant": ANNA.tenant, "adapter": stores[0], "phase": "find", "page": 1}
    row |= {"find_pass": 1, "required": 1, "next_attempt_at_us": 0, "known_adapter": stores[0], "known_page": 0}
    with stage.ledger.engine.begin() as connection:
        bulk.insert(connection, t.targets, targets)
        bulk.insert(connection, t.units, [row])
    order = EraseOrder(
        job=job,
        unit=unit,
        key=str(unit),
        scope=ANNA,
        selector=Selector(kind=SelectorKind.KEY, value="passport"),
        known=(Target(kind="fact", id=f"{stores[0]}-1"),),
        deadline=stage.clock.now(),
    )
    claimed = Claimed(
        order=order,
        adapter=stores[0],
        reason=Reason.USER_REQUEST,
        phase=Phase.FIND,
        page=1,
        find_pass=1,
        known_from=(stores[0], 0),
        item=None,
        last_round=False,
        epoch=1,
    )
    return Finished(claimed=claimed, receipt=None)


def test_next_known_page_of_a_job_is_its_own(stage: Bench) -> None:
    one, two = found_in(stage, "memory", "zeta"), found_in(stage, "memory", "papers")
    stores = [Store(name=name, role=Role.DERIVED) for name in ("memory", "papers", "zeta")]
    with stage.ledger.engine.begin() as connection:
        follow.next_pages(connection, [one, two], stores)
    rows = stage.rows("SELECT job_id, known_adapter, known_page FROM deletion_units WHERE phase = 'find' AND page = 2")
    expected = {(str(one.claimed.order.job), "zeta", 0), (str(two.claimed.order.job), "papers", 0)}
    assert set(rows) == expected
