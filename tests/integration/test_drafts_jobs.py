"""Deletion jobs over drafts, by the engine as a deployment opens it: with holds, deaths, expiry and a look at bytes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from adapters.drafts import DraftsAdapter, Fault, MemoryChanged, State
from orchestrator import Reason, Scope, Selector, SelectorKind, StorageAdapter, bootstrap
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock
from tests.integration.drafts_harness import Desk, with_drafts
from tests.integration.jobs_harness import Deployment, Died
from tests.servers import fake_redis

ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = replace(ANNA, user="berta")
SECRET = "The passport number is P1234567."
OTHER = "Window seats only, row twelve or so."
PASSPORT = Selector(kind=SelectorKind.KEY, value="passport")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
DONE = (JobState.COMPLETED, Result.ERASED)
COUNT = """
import pathlib, sys
texts = [path.read_bytes() for path in pathlib.Path(sys.argv[1]).glob("memory.db*")]
print(sum(text.count(sys.argv[2].encode()) for text in texts))
"""


@dataclass
class Office(Deployment):
    """A deployment with drafts, and the hands of a desk on its stores."""

    folder: Path

    @property
    def desk(self) -> Desk:
        drafts = cast("DraftsAdapter", self.engine.adapters["drafts"])
        return Desk(self.memory, drafts, self.clock)

    def draft(self, scope: Scope) -> None:
        """Let a user tell two facts; one report is published of both, one of the seat, one is left as a draft."""
        desk = self.desk
        desk.tell("passport", SECRET, scope)
        desk.tell("seat", OTHER, scope)
        desk.publish("report-001", scope)
        desk.publish("report-002", scope, keys=["seat"])
        desk.runtime.submit(scope, "report-003")
        desk.die("report-003", Fault.AFTER_DRAFT, scope)

    def request(self, selector: Selector, scope: Scope = ANNA) -> str:
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        return str(accept(asked, self.control.acceptance)[0])

    def erased(self, job: str) -> dict[str, int]:
        receipts = self.control.ledger.receipts(job)
        return {r.adapter: r.erased for r in receipts if r.phase == "erase"}

    def hits(self, text: str) -> int:
        """Count a text in the raw files, in a process of its own: SQLite has locks on them here."""
        command = [sys.executable, "-c", COUNT, str(self.folder), text]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)


def deployed(
    folder: Path, *, memory: str = "logical", drafts: str = "logical", url: str = "sqlite:///memory.db"
) -> Iterator[Office]:
    """Open a deployment; `memory` and `drafts` are how far the two are looked at."""
    initialise(folder)
    with fake_redis() as cache:
        file = folder / "expunge.toml"
        text = file.read_text().replace("redis://127.0.0.1:0/0", cache).replace("sqlite:///memory.db", url)
        file.write_text(re.sub(r'(?<=\[adapters\.memory\]\nrequired = true\nrequire  = )"\w+"', f'"{memory}"', text))
        with_drafts(folder, drafts, url)
        clock = FakeClock()
        control = bootstrap.open_control(folder, clock)
        upgrade(control.database)
        made = Office(control, bootstrap.open_engine(control), clock, folder)
        yield made
        adapters: list[StorageAdapter] = list(made.engine.adapters.values())
        for adapter in adapters:
            adapter.close()
        control.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    url = "sqlite:///memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    yield from deployed(tmp_path / "state", url=url)


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Office]:
    yield from deployed(tmp_path / "state")


@pytest.mark.req("R141")
@pytest.mark.parametrize(("selector", "gone"), [(PASSPORT, 5), (SUBJECT, 8)])
def test_request_takes_the_drafts_with_the_facts(office: Office, selector: Selector, gone: int) -> None:
    for scope in (ANNA, BERTA):
        office.draft(scope)
    stays = office.desk.texts(BERTA)
    job = office.request(selector)
    office.run()
    assert office.ended(job) == DONE
    assert office.erased(job)["drafts"] == gone
    assert not [text for text in office.desk.texts(ANNA) if SECRET in text]
    assert len(office.desk.texts(ANNA)) == 8 - gone
    assert office.desk.texts(BERTA) == stays
    told = office.desk.runtime.inspect(ANNA, "report-003")
    assert (told.state, told.drafts) == (State.FAILED, ())
    with pytest.raises(MemoryChanged):
        office.desk.runtime.run(ANNA, "report-003")
    assert office.desk.runtime.inspect(ANNA, "report-001").report is None


def test_process_that_dies_around_the_erase_takes_the_same_again(single: Office) -> None:
    single.draft(ANNA)
    job = single.request(PASSPORT)
    single.die_once("drafts.erase")
    with pytest.raises(Died):
        single.run()
    assert not [text for text in single.desk.texts() if SECRET in text], "the effect is there, the receipt is not"
    single.take_over()
    single.run()
    assert single.ended(job) == DONE
    receipts = single.control.ledger.receipts(job)
    ((erased, absent),) = [
        (r.erased, r.already_absent) for r in receipts if (r.adapter, r.phase) == ("drafts", "erase")
    ]
    assert (erased, absent) == (0, 5)


def test_drafts_of_a_held_fact_stay_until_it_is_free(single: Office) -> None:
    fact = single.desk.tell("passport", SECRET, ANNA)
    single.desk.tell("seat", OTHER, ANNA)
    single.desk.publish("report-001", ANNA, keys=["passport"])
    single.desk.publish("report-002", ANNA, keys=["seat"])
    hold = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(fact.id,), reason=HoldReason.LITIGATION, requested_by="counsel"
    )
    (placed,) = place(hold, single.control.acceptance)
    single.run()
    job = single.request(SUBJECT)
    single.run()
    assert single.view(job).held
    assert single.desk.texts() == [f"Report\n\npassport: {SECRET}"] * 2 + [f"passport: {SECRET}"]
    single.control.ledger.release(str(placed), by_ref="somebody")
    single.run()
    assert single.ended(job) == DONE
    assert single.desk.texts() == []


def test_what_expires_takes_its_drafts_along_by_a_job_of_the_clock(single: Office) -> None:
    end = single.clock.now() + timedelta(days=1)
    single.desk.tell("passport", SECRET, ANNA, expires=end.timestamp())
    single.desk.tell("seat", OTHER, ANNA)
    single.desk.publish("report-001", ANNA)
    single.desk.publish("report-002", ANNA, keys=["seat"])
    single.clock.at = end
    (job,) = look(single.memory, single.control.acceptance)
    single.run()
    assert single.ended(str(job)) == DONE
    assert single.desk.texts() == [f"Report\n\nseat: {OTHER}"] * 2 + [f"seat: {OTHER}"]


@pytest.mark.case(23)
def test_checkpoint_of_a_runner_that_slept_through_the_whole_job_is_refused(single: Office) -> None:
    single.desk.tell("passport", SECRET, ANNA)
    single.desk.runtime.submit(ANNA, "report-001")
    jobs: list[str] = []

    def sleeps(given: str) -> str:
        jobs.append(single.request(PASSPORT))
        single.run()
        assert single.ended(jobs[0]) == DONE
        return given

    with pytest.raises(MemoryChanged):
        single.desk.runtime.run(ANNA, "report-001", sleeps)
    assert single.desk.texts() == []
    assert single.desk.runtime.inspect(ANNA, "report-001").drafts == ()


@pytest.mark.parametrize("kept_as", ["fact", "draft"])
def test_words_that_somebody_else_keeps_are_no_residue(tmp_path: Path, kept_as: str) -> None:
    for office in deployed(tmp_path / "state", memory="physical", drafts="physical"):
        office.draft(ANNA)
        office.desk.tell("seat", OTHER if kept_as == "fact" else "Aisle.", BERTA)
        if kept_as == "draft":
            office.desk.runtime.submit(BERTA, "report-001")
            office.desk.runtime.run(BERTA, "report-001", lambda given: f"{given} {OTHER}")
        job = office.request(SUBJECT)
        office.run()
        looks = {
            r.adapter: (r.outcome, r.residuals) for r in office.control.ledger.receipts(job) if r.phase == "verify"
        }
        assert looks["drafts"] == looks["memory"] == ("absent", ("file_system", "shared_text"))


def test_nothing_of_a_forgotten_fact_is_left_in_the_raw_file(tmp_path: Path) -> None:
    for office in deployed(tmp_path / "state", memory="physical", drafts="physical"):
        office.draft(ANNA)
        office.desk.tell("seat", "Anywhere but in the middle, please.", BERTA)
        office.desk.publish("report-001", BERTA)
        assert office.desk.drafts.file_group == office.memory.file_group, "one scrub at a time serves both"
        assert office.hits(SECRET) > 3, "the positive control: the fact, its checkpoints and a report"
        job = office.request(SUBJECT)
        office.run()
        assert office.ended(job) == DONE
        looks = {r.adapter: (r.outcome, r.reach) for r in office.control.ledger.receipts(job) if r.phase == "verify"}
        assert (looks["drafts"], looks["memory"]) == (("absent", "physical"),) * 2
        assert office.hits(SECRET) == office.hits(OTHER) == 0
        assert office.hits("Anywhere but in the middle") > 2
