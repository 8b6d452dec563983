"""The jobs: each step in its order, a receipt for each, and receipts that say what the demo had seen before.

The faults write into the control database with its guards taken off, as nobody can by the product.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import goes
from adapters.demo.stage import Stage
from adapters.demo.world import STORES, World

STATES: Final = ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]
_MOVES: Final = "SELECT to_state FROM job_transitions WHERE job_id = ? ORDER BY at_us, rowid"
_RECEIPTS: Final = "SELECT adapter, phase FROM deletion_receipts WHERE job_id = ?"
_ORDER: Final = """SELECT max(CASE WHEN phase = 'revoke' THEN finished_at_us END),
    min(CASE WHEN phase = 'erase' THEN started_at_us END) FROM deletion_receipts WHERE job_id = ?"""
# A later round counts the same again.
_EXPECTED: Final = """SELECT adapter, sum(expected) FROM deletion_receipts WHERE phase = 'erase' AND round = 1
    GROUP BY adapter"""
_RESCUED: Final = """SELECT attempt, already_absent, outcome FROM deletion_receipts
    WHERE job_id = ? AND adapter = 'cache' AND phase = 'erase'"""
_FOUND: Final = "SELECT count(*), sum(expected + erased) FROM deletion_receipts WHERE job_id = ? AND phase = 'erase'"
_OF_ONE: Final = """(SELECT id FROM deletion_receipts WHERE phase = ? AND adapter = ? AND round = 1
    ORDER BY expected DESC LIMIT 1)"""
_LOST: Final = """DELETE FROM deletion_receipts WHERE phase = 'verify' AND adapter = 'vector'
    AND job_id = (SELECT id FROM deletion_jobs WHERE selector_kind = 'source')"""
_LATE: Final = f"UPDATE deletion_receipts SET finished_at_us = finished_at_us + 3600000000 WHERE id = {_OF_ONE}"  # noqa: S608 - texts of ours
_INVENTED: Final = f"""UPDATE deletion_receipts SET expected = expected + 1, already_absent = already_absent + 1
    WHERE id = {_OF_ONE}"""  # noqa: S608 - as above
_PRETENDED: Final = """UPDATE deletion_receipts SET outcome = 'erased', expected = 0, erased = 1, extra = 1 WHERE id =
    (SELECT id FROM deletion_receipts AS r WHERE phase = 'erase' AND NOT EXISTS (SELECT 1 FROM deletion_receipts AS o
    WHERE o.job_id = r.job_id AND o.expected > 0) LIMIT 1)"""
_SKIPPED: Final = "DELETE FROM job_transitions WHERE rowid = (SELECT max(rowid) FROM job_transitions)"


def _jobs_move_in_order(stage: Stage) -> tuple[bool, str]:
    moves = [[state for (state,) in stage.ledger(_MOVES, job)] for job in stage.told.jobs.values()]
    good = sum(states == STATES for states in moves)
    return good == len(moves) == 4, f"{good} of {len(moves)} jobs from requested to completed"  # noqa: PLR2004 - the story's


def _source_stops_first(stage: Stage) -> tuple[bool, str]:
    times = [stage.ledger(_ORDER, job)[0] for job in stage.told.jobs.values()]
    good = sum(revoked <= erased for revoked, erased in times)
    return good == len(times) > 0, f"{good} of {len(times)} jobs revoked before any copy was erased"


def _killed_worker_is_survived(stage: Stage) -> tuple[bool, str]:
    told = stage.ledger(_RESCUED, stage.told.jobs["source"])
    good = [attempt == 2 and absent > 0 for attempt, absent, _ in told]  # noqa: PLR2004 - the second worker's
    seen = "; ".join(f"attempts {attempt}, already_absent {absent}, {outcome}" for attempt, absent, outcome in told)
    return stage.told.killed and good == [True], f"killed: {stage.told.killed}; {seen}"


def _one_receipt_per_unit(stage: Stage) -> tuple[bool, str]:
    steps = Counter({("memory", "revoke"): 1, **{(s, phase): 1 for s in STORES for phase in ("erase", "verify")}})
    lacking = 0
    for name, job in stage.told.jobs.items():
        there = Counter((adapter, phase) for adapter, phase in stage.ledger(_RECEIPTS, job))
        lacking += (steps - there).total() + (name == "key" and there["backup", "close"] != 1)
    return lacking == 0, f"{lacking} receipts are missing, of {len(stage.told.jobs)} jobs over {len(STORES)} stores"


def _receipts_count_what_was_there(stage: Stage) -> tuple[bool, str]:
    before = stage.told.before
    # And the one fact with its vector and two answers that was told later, and has expired.
    wanted = {
        "memory": sum(map(goes, before.facts.values())) + 1,
        "cache": sum(map(goes, before.answers.values())) + 2,
        "drafts": sum(map(goes, before.drafts.values())),
    }
    told = {adapter: int(expected) for adapter, expected in stage.ledger(_EXPECTED)}
    detail = ", ".join(f"{store} {told.get(store)} of {count}" for store, count in wanted.items())
    return all(told.get(store) == count > 0 for store, count in wanted.items()), detail


def _nothing_found_is_said(stage: Stage) -> tuple[bool, str]:
    job, code = stage.told.mistyped
    ((looks, found),) = stage.ledger(_FOUND, job)
    good = code == 5 and (looks, found) == (len(STORES), 0)  # noqa: PLR2004 - as documented
    return good, f"a mistyped key: exit code {code}, {found} found by {looks} stores"


def _without_guards(world: World, statement: str, *given: object) -> None:
    with sight.database(world.ledger) as ledger:
        for trigger in ("receipts_no_update", "receipts_no_delete", "transitions_no_delete"):
            ledger.execute(f"DROP TRIGGER {trigger}")
        ledger.execute(statement, given)


def _skip_a_move(world: World) -> None:
    _without_guards(world, _SKIPPED)


def _revoke_late(world: World) -> None:
    _without_guards(world, _LATE, "revoke", "memory")


def _lose_a_receipt(world: World) -> None:
    _without_guards(world, _LOST)


def _invent_a_copy(world: World) -> None:
    _without_guards(world, _INVENTED, "erase", "drafts")


def _pretend(world: World) -> None:
    _without_guards(world, _PRETENDED)


CHECKS: Final = (
    Check(name="jobs_move_in_order", look=_jobs_move_in_order, plant=_skip_a_move),
    Check(name="source_stops_first", look=_source_stops_first, plant=_revoke_late),
    Check(name="killed_worker_is_survived", look=_killed_worker_is_survived),
    Check(name="one_receipt_per_unit", look=_one_receipt_per_unit, plant=_lose_a_receipt),
    Check(name="receipts_count_what_was_there", look=_receipts_count_what_was_there, plant=_invent_a_copy),
    Check(name="nothing_found_is_said", look=_nothing_found_is_said, plant=_pretend),
)
