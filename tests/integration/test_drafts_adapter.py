"""The drafts adapter at its edges: deadlines, tables of others, a source that was put back, the log, its options."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog

from adapters.drafts import DraftsAdapter, MemoryChanged, Step
from adapters.drafts import verify as verifying
from adapters.drafts.schema import open_in
from adapters.drafts.tables import metadata
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    Gate,
    InvalidRequest,
    Keyring,
    Permanent,
    StaleSource,
    Target,
)
from tests.fakes import FakeClock
from tests.integration.drafts_harness import LANGUAGE, SECRET, SUBJECT, A, Desk, desk, lone, published

__all__ = ["desk", "lone"]


def test_database_in_which_nothing_was_drafted_has_nothing_and_gets_no_tables(desk: Desk) -> None:
    fact = desk.tell("language", SECRET)
    order = desk.revoke(desk.order(SUBJECT))
    gone = replace(order, targets=(Target(kind="checkpoint", id="x"),))
    assert desk.drafts.find([order])[0].targets == ()
    assert (desk.drafts.erase([gone])[0].erased, desk.drafts.erase([gone])[0].already_absent) == (0, 1)
    assert desk.drafts.verify([gone])[0].remaining == 0
    assert order.known == (fact,)
    assert not metadata.tables.keys() & set(sa.inspect(desk.memory.store._engine).get_table_names())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE draft_schema SET version = 3",
        "UPDATE draft_schema SET version = 1",
        "DELETE FROM draft_schema",
        "DROP TABLE draft_used",
        "DROP TABLE approvals",
    ],
)
def test_tables_of_another_version_are_refused_by_every_call(desk: Desk, change: str) -> None:
    published(desk, A)
    order = desk.order(SUBJECT)
    targeted = replace(order, targets=desk.find(order))
    desk.execute(change)
    calls = (
        lambda: desk.drafts.find([order]),
        lambda: desk.drafts.erase([targeted]),
        lambda: desk.drafts.verify([targeted]),
        lambda: verifying.verify(desk.drafts._url, [targeted], wait_ms=1000),
        lambda: list(desk.drafts.live_values()),
        lambda: open_in(desk.drafts._engine),
    )
    for call in calls:
        with pytest.raises(Permanent, match="a version that this adapter does not know"):
            call()
    assert desk.rows("SELECT count(*) FROM drafts") == [(6,)]


def test_what_was_erased_does_not_stay_in_the_log_of_the_file(lone: Desk) -> None:
    published(lone, A)
    log = Path(f"{lone.drafts._url.database}-wal")
    order = lone.revoke(lone.order(LANGUAGE))
    targets = lone.find(order)
    lone.runtime.submit(A, "report-009", keys=["theme"])
    assert log.stat().st_size > 0
    lone.drafts.erase([replace(order, targets=targets)])
    assert log.stat().st_size == 0


def test_call_after_its_deadline_does_nothing(lone: Desk) -> None:
    published(lone, A)
    order = replace(lone.order(SUBJECT), targets=lone.find(lone.order(SUBJECT)))
    lone.clock.at = order.deadline + timedelta(microseconds=1)
    for call in (lone.drafts.find, lone.drafts.erase, lone.drafts.verify):
        with pytest.raises(DeadlinePassed):
            call([order])
    assert len(lone.texts()) == 6
    lone.clock.at = order.deadline
    assert lone.drafts.erase([order])[0].erased == 6


def test_source_that_was_put_back_by_hand_gives_no_draft_out_and_takes_none_in(lone: Desk) -> None:
    published(lone, A)
    asked: list[str] = []

    def known(source: str) -> int:
        asked.append(source)
        return 2

    stale = DraftsAdapter(replace(lone.drafts._context, epoch=known), url=str(lone.drafts._url))
    for call in (lambda: stale.runtime, lambda: stale.find([lone.order()]), lambda: stale.erase([lone.order()])):
        with pytest.raises(StaleSource):
            call()
    assert set(asked) == {"memory"}
    lone.execute("UPDATE source_epoch SET epoch = 2")
    assert stale.runtime.inspect(A, "report-001").report is not None
    stale.close()


def test_log_lines_hold_ids_and_counts(lone: Desk) -> None:
    with structlog.testing.capture_logs() as lines:
        published(lone, A)
        order = lone.revoke(lone.order(LANGUAGE))
        lone.clean_up(order)
        lone.runtime.submit(A, "report-009")
        lone.memory.store.forget(A, "theme")
        with pytest.raises(MemoryChanged):
            lone.runtime.run(A, "report-009")
    ours = [line for line in lines if str(line["event"]).startswith("draft")]
    assert {"drafts.erased", "draft.kept", "draft.failed"} == {line["event"] for line in ours}
    for word in (SECRET, "dark", "language", A.user, "report-001", "report-009"):
        assert word not in repr(ours)
    assert [line["step"] for line in ours if line["event"] == "draft.kept"][:3] == [step.value for step in Step]


@pytest.mark.parametrize(
    ("options", "named"), [({"url": "redis://nowhere"}, "url"), ({"urls": "x"}, "urls"), ({"url": 7}, "url")]
)
def test_wrong_option_is_named_and_not_repeated(tmp_path: Path, options: dict[str, object], named: str) -> None:
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path
    )
    with pytest.raises(InvalidRequest, match=named) as caught:
        DraftsAdapter(context, **options)
    assert "nowhere" not in str(caught.value)
