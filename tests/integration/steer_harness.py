"""What tests of steering a job share: a stage on each database, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator import Erased, EraseOrder
from orchestrator.domain.codes import Refusal, WaiverReason
from orchestrator.domain.errors import RuleRefused
from orchestrator.domain.job import Waiver
from tests.fakes import Bench, bench

NAMES = ["source", "copies"]
WAIVER = Waiver(adapter="copies", reason=WaiverReason.UNSUPPORTED, granted_by_ref="somebody")
WAYS: dict[str, Callable[[Bench, str, str | None], object]] = {
    "retry": lambda stage, job, tenant: stage.ledger.retry(job, tenant=tenant),
    "cancel": lambda stage, job, tenant: stage.ledger.cancel(job, tenant=tenant),
    "waive": lambda stage, job, tenant: stage.ledger.waive(job, WAIVER, tenant=tenant),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def work(_phase: str, _orders: object) -> None:
    """Let a call pass."""


def cannot_erase(orders: Sequence[EraseOrder]) -> list[Erased]:
    return [Erased(unsupported=True) for _ in orders]


def refusal(call: Callable[[], object]) -> Refusal:
    with pytest.raises(RuleRefused) as caught:
        call()
    return caught.value.refusal


def rows_of(stage: Bench, job: str) -> list[list[tuple[object, ...]]]:
    tables = ("deletion_jobs WHERE id", "deletion_units WHERE job_id", "waivers WHERE job_id")
    return [sorted(stage.rows(f"SELECT * FROM {table} = '{job}'"), key=repr) for table in tables]  # noqa: S608
