"""What was made from copies, at whatever distance and in whatever store, goes with them; what stands beside stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from adapters.vector import Point
from orchestrator import Erased, EraseOrder, Reason, Scope, Selector, SelectorKind, Target
from orchestrator.domain.job import Purpose, Result
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from tests.integration.five_stores import ANNA, BERTA, SECRET, Five, five

__all__ = ["five"]
GENERATIONS = 5
BY_KEY = Selector(kind=SelectorKind.KEY, value="passport")


def build(five: Five, who: Scope) -> Target:
    """Make a report of the fact, a report upon that, a vector of it, and answers, each made from the one before.

    Gives the first answer.
    """
    five.learn(who)
    runtime, answers, at = five.drafts.runtime, five.cache.answers, five.memory.store.revision(who)
    runtime.submit(who, "report-002", keys=[], upon=["report-001"])
    report = runtime.run(who, "report-002").report
    assert report is not None
    index = five.vector.index(five.memory.masters, five.drafts.masters)
    point = Point(made_from=report.target, source="report-002", vector=[0.0, 1.0, 0.0, 0.5])
    (id_,) = index.put(who, [point]).ids
    last, first = Target(kind="point", id=id_), None
    for n in range(GENERATIONS):
        assert answers.put(who, f"question-{n}", SECRET, [last], at)
        last = Target(kind="cache_key", id=five.cache._keys.entry(who, f"question-{n}"))
        first = first or last
    assert first is not None
    return first


def shown(five: Five, who: Scope) -> int:
    """Count what is given out that was built."""
    index = five.vector.index(five.memory.masters, five.drafts.masters)
    answers = [five.cache.answers.get(who, f"question-{n}") for n in range(GENERATIONS)]
    return len(five.readable(who)) + len(index.search(who, [0.0, 1.0, 0.0, 0.5]).hits) + sum(map(bool, answers))


def kept(five: Five, who: Scope) -> list[int]:
    """Count what the stores hold, whoever may read it: points, drafts and entries."""
    with five.vector._engine.connect() as connection:
        points = connection.exec_driver_sql(
            "SELECT count(*) FROM vector_points WHERE user_id = ?", (who.user,)
        ).scalar_one()
    members = five.cache.client().smembers(five.cache._keys.subject(who).members)
    drafts = five.rows("SELECT handle FROM drafts WHERE user_id = ?", who.user)
    return [points, len(drafts), len(members)]


@pytest.mark.parametrize("asked", [None, BY_KEY, Selector(kind=SelectorKind.SUBJECT)])
def test_everything_that_was_made_from_a_fact_goes_at_whatever_distance(five: Five, asked: Selector | None) -> None:
    for who in (ANNA, BERTA):
        build(five, who)
    everything = 4 + 2 + GENERATIONS
    assert [shown(five, who) for who in (ANNA, BERTA)] == [everything, everything]
    of_each = [2, 6, 1 + GENERATIONS]
    assert [kept(five, who) for who in (ANNA, BERTA)] == [of_each, of_each]
    job = five.request(asked)
    five.run()
    view = five.view(job)
    assert (view.state, view.result, view.round) == (JobState.COMPLETED, Result.ERASED, 1), "in one round"
    assert (shown(five, ANNA), kept(five, ANNA)) == (0, [0, 0, 0])
    assert (shown(five, BERTA), kept(five, BERTA)) == (everything, of_each), "nobody else notices"
    erased = Counter[str]()
    for receipt in five.control.ledger.receipts(job):
        erased[receipt.adapter] += receipt.erased
    assert erased == {"memory": 1, "vector": 2, "drafts": 6, "cache": 1 + GENERATIONS, "backup": 0}


def test_text_that_was_made_from_two_facts_goes_with_either_and_the_other_fact_stays(five: Five) -> None:
    passport = five.learn(ANNA)
    store = five.memory.store
    store.register_source(ANNA, "anna/turn-7")
    store.put(ANNA, "meal", "I eat fish.", "anna/turn-7", user_statement=True)
    meal = next(
        Target(kind="fact", id=fact.id, version=fact.version) for fact in store.current(ANNA) if fact.key == "meal"
    )
    answers, at = five.cache.answers, store.revision(ANNA)
    assert answers.put(ANNA, "Who am I?", f"{SECRET} I eat fish.", [meal, passport], at)
    assert answers.put(ANNA, "What do I eat?", "Fish.", [meal], at)
    five.drafts.runtime.submit(ANNA, "report-both")
    five.drafts.runtime.run(ANNA, "report-both")
    five.drafts.runtime.submit(ANNA, "report-meal", keys=["meal"])
    five.drafts.runtime.run(ANNA, "report-meal")
    job = five.request(BY_KEY)
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    assert [fact.key for fact in store.current(ANNA)] == ["meal"]
    assert answers.get(ANNA, "Who am I?") is None
    assert answers.get(ANNA, "What do I eat?") == "Fish."
    texts = [row.text for row in five.rows("SELECT text FROM drafts WHERE user_id = ?", "anna")]
    assert len(texts) == 3
    assert not [text for text in texts if SECRET in text]


def test_late_artefact_of_an_artefact_is_seen_by_the_last_look_and_goes_in_the_next_round(five: Five) -> None:
    first = build(five, ANNA)
    job = five.request()
    keys, client = five.cache._keys, five.cache.client()
    late = keys.entry(ANNA, "question-late")

    def write_late() -> None:
        """Write behind the cache's own fence, as a process would that knows nothing of it."""
        client.hset(
            late,
            mapping={
                "answer": SECRET,
                "scope": keys.scope(ANNA),
                "made_from": f'["cache_key:{first.id}@0"]',
                "revision": 1,
            },
        )
        client.sadd(keys.subject(ANNA).members, late)

    erase, done = five.cache.erase, list[int]()

    def and_then(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        answers = erase(orders)
        if not done and any(answer.erased for answer in answers):
            done.append(1)
            write_late()
        return answers

    five.cache.erase = and_then  # type: ignore[method-assign]
    five.run()
    view = five.view(job)
    assert done
    assert (view.state, view.round) == (JobState.COMPLETED, 2)
    assert not client.exists(late)


def test_preview_counts_what_was_made_from_copies_as_the_job_would(five: Five) -> None:
    build(five, ANNA)
    asked = Request(scope=ANNA, selector=BY_KEY, reason=Reason.OPERATOR, requested_by="tester", purpose=Purpose.PREVIEW)
    job = str(accept(asked, five.control.acceptance)[0])
    five.run()
    assert five.view(job).state is JobState.CANCELLED
    assert five.control.ledger.counts(job) == {"memory": 1, "vector": 2, "drafts": 6, "cache": 1 + GENERATIONS}
    assert shown(five, ANNA) == 4 + 2 + GENERATIONS, "nothing is changed"
