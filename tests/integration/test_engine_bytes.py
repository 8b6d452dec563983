"""The engine looks at bytes: a receipt says physical only after a scrub that began late enough, and a scan that saw."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import EraseOrder, Holding, Keyring, Residual, Revocation
from orchestrator.domain.contract import Scrubbed, ScrubReport
from orchestrator.domain.job import JobView
from orchestrator.domain.states import JobState
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.service.look import Bytes
from tests.fake_stores import FakeSource
from tests.fakes import Bench, bench, fill

KEYS = Keys.derive(Keyring.create())
BY = Fingerprinter(KEYS)


def text_of(ident: str) -> str:
    """Give a text of its own to each record: what several share is told of no one."""
    return hashlib.sha256(ident.encode()).hexdigest()


@dataclass
class FileSource(FakeSource):
    """A source whose records lie in a file, from which only a scrub takes what was erased."""

    path: Path = Path()
    outcome: Scrubbed = Scrubbed.CLEAN
    begun: list[str] = field(default_factory=list)
    left: set[str] = field(default_factory=set)  # texts that a scrub does not reach
    of_others: set[str] = field(default_factory=set)  # texts of live records that no request names
    markers: list[bytes] = field(default_factory=list)
    file_group: str = "file"

    def write(self) -> None:
        texts = [text_of(record[3]).encode() for record in sorted(self.records)]
        kept = [text.encode() for text in sorted(self.left | self.of_others)]
        self.path.write_bytes(b"\n".join([*texts, *kept, *self.markers]))

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        return [self._printed(answer) for answer in super().revoke(orders)]

    def _printed(self, answer: Revocation) -> Revocation:
        prints = [row for target in answer.targets for row in BY.of_text(text_of(target.id)).rows]
        return replace(answer, fingerprints=tuple(prints))

    def scrub(self) -> ScrubReport:
        self.begun.append("scrub")
        if self.outcome is Scrubbed.CLEAN:
            self.write()
        return ScrubReport(outcome=self.outcome, residuals=frozenset({Residual.FILE_SYSTEM}))

    @contextmanager
    def live_files(self) -> Iterator[Sequence[Path]]:
        yield [self.path]

    def live_values(self) -> Iterable[bytes]:
        return [text.encode() for text in {*(text_of(record[3]) for record in self.records), *self.of_others}]

    def plant(self, marker: bytes) -> None:
        self.markers = [marker]

    def uproot(self, marker: bytes) -> None:
        self.markers.remove(marker)


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    source = FileSource(made.gate, made.clock, path=tmp_path / "records")
    scanner = ProcessScanner(KEYS, timedelta(minutes=1))
    looking = Bytes(stores={"source": source}, scanner=scanner, ledger=made.ledger, clock=made.clock)
    made.engine = replace(made.engine, adapters={**made.engine.adapters, "source": source}, bytes=looking)
    made.source = source
    yield made
    made.ledger.engine.dispose()


def files(stage: Bench) -> FileSource:
    assert isinstance(stage.source, FileSource)
    return stage.source


def looks(stage: Bench, job: str) -> list[tuple[object, ...]]:
    told = "adapter, outcome, reach, scrub_run_id IS NOT NULL, residuals"
    mine = f"job_id = '{job}' AND phase = 'verify'"
    rows = stage.rows(f"SELECT {told} FROM deletion_receipts WHERE {mine} ORDER BY adapter, round")  # noqa: S608
    return [(*row[:3], bool(row[3]), row[4]) for row in rows]


def test_receipt_is_physical_where_a_scan_saw_its_marker_and_nothing_of_ours(stage: Bench) -> None:
    fill(stage, count=2)
    fill(stage, "diet")
    files(stage).write()
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert looks(stage, job) == [
        ("copies", "absent", "logical", False, "[]"),
        ("source", "absent", "physical", True, '["file_system"]'),
    ]
    in_file = files(stage).path.read_text()
    assert text_of("anna-passport-000000") not in in_file
    assert text_of("anna-diet-000000") in in_file
    # What a scan looks for is no longer kept, and one scrub was enough.
    assert stage.rows("SELECT count(*) FROM fingerprints") == [(0,)]
    assert stage.rows("SELECT store, outcome, control_found FROM scrub_runs") == [("file", "clean", 1)]


def test_bytes_that_no_scrub_reaches_open_new_rounds_and_then_park(stage: Bench) -> None:
    fill(stage)
    files(stage).left = {text_of("anna-passport-000000")}
    job = stage.file()
    stage.run()
    view: JobView = stage.view(job)
    assert view.state is JobState.DERIVED_CLEANUP
    assert view.waits_for_a_person
    assert {look[1] for look in looks(stage, job) if look[0] == "source"} == {"present"}


def test_bytes_that_a_derived_store_alone_knows_are_looked_for_too(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector of a text is in no source: its store tells what to look for when it finds the copy."""
    fill(stage)
    files(stage).left = {text_of("a vector")}
    find = stage.copies.find

    def with_prints(orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        prints = BY.of_text(text_of("a vector")).rows
        return [replace(holding, fingerprints=prints) for holding in find(orders)]

    unseen = stage.file()
    stage.run()
    assert stage.view(unseen).state is JobState.COMPLETED, "without them the bytes are not looked for"
    monkeypatch.setattr(stage.copies, "find", with_prints)
    fill(stage, "diet")
    job = stage.file("diet")
    stage.run()
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    assert {look[1] for look in looks(stage, job) if look[0] == "source"} == {"present"}


def test_bytes_that_another_live_record_holds_leave_the_reach_logical(stage: Bench) -> None:
    fill(stage)
    files(stage).of_others = {f"a longer text with {text_of('anna-passport-000000')} in it"}
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert looks(stage, job)[-1] == ("source", "absent", "logical", True, '["file_system", "shared_text"]')


def test_bytes_beside_those_that_others_hold_are_still_seen(stage: Bench) -> None:
    fill(stage)
    text = text_of("anna-passport-000000")
    files(stage).of_others, files(stage).left = {text[:40]}, {text[20:]}
    job = stage.file()
    stage.run()
    assert {look[1] for look in looks(stage, job) if look[0] == "source"} == {"present"}


@pytest.mark.parametrize("outcome", [Scrubbed.BUSY, Scrubbed.FAILED])
def test_scrub_that_did_not_clean_is_tried_again_then_parked_and_never_clean(stage: Bench, outcome: Scrubbed) -> None:
    fill(stage)
    files(stage).outcome = outcome
    job = stage.file()
    for _ in range(8):
        stage.run()
        stage.skip_pauses()
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    assert stage.view(job).waits_for_a_person
    assert [look[0] for look in looks(stage, job)] == ["copies"]
    files(stage).outcome = Scrubbed.CLEAN
    stage.ledger.retry(job)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


def test_no_look_rests_on_a_scrub_that_began_before_the_last_erase(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    order: list[str] = []
    stage.source.before = lambda phase, _orders: order.append(f"source.{phase}")
    stage.copies.before = lambda phase, _orders: order.append(f"copies.{phase}")
    plain = files(stage).scrub

    def scrub() -> ScrubReport:
        order.append("scrub")
        return plain()

    files(stage).scrub = scrub  # type: ignore[method-assign]
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert order.index("scrub") > max(order.index("source.erase"), order.index("copies.erase"))
    ((began, erased),) = stage.rows(
        "SELECT (SELECT min(started_at_us) FROM scrub_runs), "
        "(SELECT max(next_attempt_at_us) FROM deletion_units WHERE phase = 'verify')"
    )
    assert int(str(began)) >= int(str(erased))


def test_scrub_of_a_worker_that_died_is_failed_and_the_next_one_goes_on(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    assert stage.ledger.open_scrub("file", "a worker that dies") is not None
    assert stage.ledger.open_scrub("file", "another") is None
    with stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE scrub_runs SET lease_until_us = 1")
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.rows("SELECT outcome, error_code FROM scrub_runs ORDER BY started_at_us, id") == [
        ("failed", "lease_ended"),
        ("clean", None),
    ]


def test_target_without_a_fingerprint_is_named_and_never_called_physical(stage: Bench) -> None:
    fill(stage)
    source = files(stage)
    plain = source._printed

    def printed(answer: Revocation) -> Revocation:
        return replace(plain(answer), fingerprints=(), unprobed=len(answer.targets))

    source._printed = printed  # type: ignore[method-assign]
    job = stage.file()
    stage.run()
    assert looks(stage, job)[-1] == ("source", "absent", "logical", False, '["not_probeable"]')
    assert source.begun == []
    revoked = stage.rows(f"SELECT residuals FROM deletion_receipts WHERE phase = 'revoke' AND job_id = '{job}'")  # noqa: S608
    assert revoked == [('["not_probeable"]',)]


def test_answer_that_counts_more_without_fingerprints_than_it_names_is_refused(stage: Bench) -> None:
    fill(stage)
    source = files(stage)
    source._printed = lambda answer: replace(answer, unprobed=9)  # type: ignore[method-assign]
    job = stage.file()
    stage.run()
    assert stage.view(job).last_error is not None
    assert stage.rows(f"SELECT count(*) FROM deletion_receipts WHERE job_id = '{job}'") == [(0,)]  # noqa: S608
