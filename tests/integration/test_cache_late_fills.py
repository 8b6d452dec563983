"""A slow reader of a project in which nothing was ever cached: a job of all projects keeps it out as well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import Erased, Reason, Selector, SelectorKind, Target
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from tests.integration.cache_harness import ALLERGY, ANNA, EVERYWHERE, NEIGHBOUR, PASSPORT, Cache
from tests.integration.five_stores import SECRET, Five
from tests.integration.write_paths_harness import answers_url, five

__all__ = ["answers_url", "five"]

QUESTION = "Which passport?"


@pytest.mark.case(30)
def test_fill_that_began_before_a_job_of_all_projects_is_refused_where_nothing_was_ever_filled(cache: Cache) -> None:
    assert cache.forget(cache.order(EVERYWHERE, known=(PASSPORT,), revision=5)) == Erased()
    assert not cache.answers.put(ANNA, QUESTION, "P1234567", [PASSPORT], 4)
    assert not cache.answers.put(EVERYWHERE, QUESTION, "P1234567", [PASSPORT], 4)
    assert cache.dump().keys() <= {cache.adapter._keys.subject(ANNA).fence(cache.adapter._keys.scope(EVERYWHERE))}
    assert cache.answers.put(ANNA, QUESTION, "none is known", [ALLERGY], 5)
    assert cache.answers.put(NEIGHBOUR, QUESTION, "P1234567", [PASSPORT], 4)


def test_job_of_one_project_keeps_nobody_out_of_another(cache: Cache) -> None:
    cache.forget(cache.order(ANNA, known=(PASSPORT,), revision=5))
    assert not cache.answers.put(ANNA, QUESTION, "P1234567", [PASSPORT], 4)
    for scope in (EVERYWHERE, replace(ANNA, project="another")):
        assert cache.answers.put(scope, QUESTION, "none is known", [ALLERGY], 4)


@pytest.mark.case(26)
@pytest.mark.case(30)
def test_so_it_is_with_the_revisions_that_a_source_gives(five: Five) -> None:
    anna = replace(ANNA, tenant="acme", user="anna", project="trips")
    everywhere, store = replace(anna, project=None), five.memory.store
    store.register_source(anna, "anna/turn-6")
    version = store.put(anna, "passport", SECRET, "anna/turn-6", user_statement=True)
    (fact,) = store.current(anna)
    made_from, revision = [Target(kind="fact", id=fact.id, version=version)], store.revision(anna)
    selector = Selector(kind=SelectorKind.SUBJECT)
    asked = Request(scope=everywhere, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
    job = str(accept(asked, five.control.acceptance)[0])
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    assert not five.cache.answers.put(anna, QUESTION, SECRET, made_from, revision)
    assert five.cache.answers.get(anna, QUESTION) is None
    # Whoever reads now may keep an answer, in that project and in one in which nothing was told so far.
    for scope in (anna, replace(anna, project="another")):
        now = max(store.revision(scope), store.revision(everywhere))
        assert five.cache.answers.put(scope, QUESTION, "none is known", [replace(made_from[0], id="of-another")], now)
