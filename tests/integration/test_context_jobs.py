"""Deletion jobs over inputs, by the engine as a deployment opens it: what holds something forgotten goes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from adapters.backup.manifest import Policy
from adapters.context import InputTaken, InputUnknown, Ranked, Ranking, Record
from adapters.drafts import DraftsAdapter
from orchestrator import Scope, Selector, SelectorKind
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.states import JobState
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from tests.integration.context_harness import Study, study, told
from tests.integration.drafts_harness import name_of
from tests.integration.drafts_jobs_harness import ANNA, BERTA, DONE, SUBJECT, Office, deployed
from tests.integration.five_stores import Five, five
from tests.integration.jobs_harness import Died

__all__ = ["five", "study"]
PASSPORT = "The passport number is P1234567."
SEAT = "Window seats only, row twelve or so."
MEAL = "Fish, and no dairy \N{EM DASH} ever."
TENT = "Once slept in a tent near Harbin."
TEXTS = {"passport": PASSPORT, "seat": SEAT, "meal": MEAL, "tent": TENT}


class House(Office):
    """A deployment in which inputs are assembled."""

    @property
    def study(self) -> Study:
        return Study(self.memory, cast("DraftsAdapter", self.engine.adapters["drafts"]), self.clock)

    def live(self, scope: Scope) -> Mapping[str, str]:
        """Let a person tell four things, and have an input made of all and one of each; give the ids of the records."""
        study = self.study
        passport = study.tell("passport", PASSPORT, scope, source="turn-1")
        seat = study.tell("seat", SEAT, scope, source="turn-2")
        meal = study.prefer("meal", MEAL, scope, source="turn-3")
        tent = study.remember(TENT, scope)
        study.assemble("all", scope=scope, preferences=["meal"])
        for name, key in (("passport", "passport"), ("seat", "seat"), ("tent", None)):
            study.assemble(name, of(key), scope)
        study.assemble("meal", lambda _: Ranked(), scope, preferences=["meal"])
        return {"passport": passport.id, "seat": seat.id, "meal": meal.id, "tent": tent.id}

    def holding(self, scope: Scope) -> list[list[str]]:
        """Name what each input of a scope holds, as its row says."""
        return sorted([name for name, text in TEXTS.items() if text in row] for row in self.study.inputs(scope))


def of(key: str | None) -> Ranking:
    """Rank the records of one key alone."""

    def rank(records: Sequence[Record]) -> Ranked:
        return Ranked(order=tuple(record.target for record in records if record.key == key))

    return rank


ALL = [["meal"], ["passport"], ["passport", "seat", "meal", "tent"], ["seat"], ["tent"]]


NAMED = {
    "key": (SelectorKind.KEY, "passport", [["meal"], ["seat"], ["tent"]]),
    "key of a preference": (SelectorKind.KEY, "meal", [["passport"], ["seat"], ["tent"]]),
    "source": (SelectorKind.SOURCE, "turn-2", [["meal"], ["passport"], ["tent"]]),
    "source of a preference": (SelectorKind.SOURCE, "turn-3", [["passport"], ["seat"], ["tent"]]),
    "memory": (SelectorKind.MEMORY, "tent", [["meal"], ["passport"], ["seat"]]),
    "fact": (SelectorKind.MEMORY, "passport", [["meal"], ["seat"], ["tent"]]),
    "event": (SelectorKind.MEMORY, "meal", [["passport"], ["seat"], ["tent"]]),
    "subject": (SelectorKind.SUBJECT, None, []),
}


def takes_what_it_names_and_no_other(house: House, named: str) -> None:
    ids = house.live(ANNA)
    house.live(BERTA)
    assert house.holding(ANNA) == house.holding(BERTA) == ALL
    kind, value, stays = NAMED[named]
    if value is not None:
        value = {SelectorKind.SOURCE: name_of(ANNA, value), SelectorKind.MEMORY: ids.get(value)}.get(kind, value)
    job = house.request(Selector(kind=kind, value=value))
    house.run()
    assert house.ended(job) == DONE
    assert house.holding(ANNA) == stays
    assert house.holding(BERTA) == ALL
    assert house.rows("SELECT handle FROM draft_used WHERE handle NOT IN (SELECT handle FROM drafts)") == []
    (erased,) = [r.erased for r in house.control.ledger.receipts(job) if (r.adapter, r.phase) == ("drafts", "erase")]
    assert erased == len(ALL) - len(stays)


@pytest.mark.parametrize("named", NAMED)
def test_job_erases_the_inputs_that_were_made_from_what_it_names_and_no_other(tmp_path: Path, named: str) -> None:
    with deployed(tmp_path / "state", House) as house:
        takes_what_it_names_and_no_other(house, named)


@pytest.mark.parametrize("named", ["key", "source of a preference", "memory", "subject"])
def test_job_erases_them_on_postgresql_as_well(tmp_path: Path, postgres_url: str, named: str) -> None:
    with deployed(tmp_path / "state", House, url=postgres_url) as house:
        takes_what_it_names_and_no_other(house, named)


def test_name_of_an_erased_input_is_free_for_one_without_what_was_forgotten(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House) as house:
        house.live(ANNA)
        job = house.request(Selector(kind=SelectorKind.KEY, value="passport"))
        house.run()
        assert house.ended(job) == DONE
        with pytest.raises(InputUnknown):
            house.study.inspector(ANNA).stale("all", project=ANNA.project)
        made = house.study.assemble("all", scope=ANNA, preferences=["meal"])
        assert set(told(made)) == {SEAT, MEAL, TENT}
        with pytest.raises(InputTaken):
            house.study.assemble("seat", scope=ANNA)


def test_input_that_holds_no_record_has_a_known_origin_and_goes_with_its_owner(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House) as house:
        for scope in (ANNA, BERTA):
            assert told(house.study.assemble("empty", scope=scope)) == []
        study = house.study
        for selector, found in ((Selector(kind=SelectorKind.KEY, value="passport"), 0), (SUBJECT, 1)):
            (holding,) = study.drafts.find([study.order(selector, ANNA)])
            assert (holding.no_lineage, [target.kind for target in holding.targets]) == (0, ["input"] * found)
        job = house.request(SUBJECT)
        house.run()
        assert house.ended(job) == DONE
        assert (study.inputs(ANNA), len(study.inputs(BERTA))) == ([], 1)


def test_process_that_dies_around_the_erase_takes_the_same_again(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House) as house:
        house.live(ANNA)
        job = house.request(Selector(kind=SelectorKind.KEY, value="passport"))
        house.die_once("drafts.erase")
        with pytest.raises(Died):
            house.run()
        assert house.holding(ANNA) == [["meal"], ["seat"], ["tent"]], "the effect is there, the receipt is not"
        house.take_over()
        house.run()
        assert house.ended(job) == DONE


def test_input_of_a_held_fact_stays_until_it_is_free(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House) as house:
        ids = house.live(ANNA)
        hold = HoldRequest(
            tenant=ANNA.tenant,
            user=ANNA.user,
            items=(ids["passport"],),
            reason=HoldReason.LITIGATION,
            requested_by="counsel",
        )
        (placed,) = place(hold, house.control.acceptance)
        house.run()
        job = house.request(SUBJECT)
        house.run()
        assert house.view(job).held
        assert ["passport"] in house.holding(ANNA)
        assert told(house.study.assemble("later", scope=ANNA)) == [], "and goes into no new one"
        house.control.ledger.release(str(placed), by_ref="somebody")
        house.run()
        assert house.ended(job) == DONE
        assert not [row for row in house.study.inputs(ANNA) if PASSPORT in row]


def test_what_expires_takes_its_inputs_along(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House) as house:
        end = house.clock.now() + timedelta(days=1)
        house.study.tell("passport", PASSPORT, ANNA, expires=end.timestamp())
        house.study.tell("seat", SEAT, ANNA)
        house.study.assemble("all", scope=ANNA)
        house.study.assemble("seat", of("seat"), ANNA)
        house.clock.at = end
        (job,) = look(house.memory, house.control.acceptance)
        house.run()
        assert house.ended(str(job)) == DONE
        assert house.holding(ANNA) == [["seat"]]


def test_nothing_of_an_input_is_left_in_the_raw_files_after_verified(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", House, require="physical") as house:
        house.live(ANNA)
        house.study.tell("seat", "Anywhere but in the middle, please.", BERTA)
        house.study.assemble("all", scope=BERTA)
        assert all(house.hits(text) >= 3 for text in TEXTS.values()), "the positive control: a record and two inputs"
        job = house.request(SUBJECT)
        house.run()
        assert house.ended(job) == DONE
        looks = {r.adapter: (r.outcome, r.reach) for r in house.control.ledger.receipts(job) if r.phase == "verify"}
        assert (looks["drafts"], looks["memory"]) == (("absent", "physical"),) * 2
        assert [house.hits(text) for text in TEXTS.values()] == [0, 0, 0, 0]
        assert house.hits("Anywhere but in the middle") >= 2


@pytest.mark.parametrize("forgotten", ["turn-1", "turn-3"])
def test_input_goes_from_a_copy_with_the_record_that_it_was_made_from(five: Five, forgotten: str) -> None:
    study = Study(five.memory, five.drafts, five.clock)
    for scope in (ANNA, BERTA):
        study.tell("passport", PASSPORT, scope)
        study.prefer("meal", MEAL, scope, "turn-3")
        study.assemble("all", scope=scope, preferences=["meal"])
    copy = five.backup.take(Policy.REWRITE, None)
    job = five.request(Selector(kind=SelectorKind.SOURCE, value=name_of(ANNA, forgotten)))
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    with closing(sqlite3.connect(five.control.settings.state_dir / "backups" / copy.file)) as connection:
        texts = connection.execute("SELECT user_id, text FROM drafts WHERE step = 'input' ORDER BY 1").fetchall()
    assert [(user, MEAL in text) for user, text in texts] == [(BERTA.user, True)]
    assert (study.inputs(ANNA), len(study.inputs(BERTA))) == ([], 1)


def test_input_whose_record_was_erased_before_the_copy_goes_when_the_source_is_put_back(study: Study) -> None:
    for scope in (ANNA, BERTA):
        study.tell("passport", PASSPORT, scope)
        study.assemble("all", scope=scope)
    order = study.order(Selector(kind=SelectorKind.KEY, value="passport"), ANNA)
    (revoked,) = study.memory.revoke([order])
    study.memory.erase([replace(order, targets=revoked.targets)])
    assert len(study.inputs(ANNA)) == 1
    marks = [(ANNA.tenant, order.job, mark) for mark in revoked.tombstones]
    assert study.memory.restore(None, marks, lambda: 2).erased > 0
    assert (study.inputs(ANNA), len(study.inputs(BERTA))) == ([], 1)
