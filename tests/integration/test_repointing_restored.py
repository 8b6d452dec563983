"""After a restore a fact that two sources told stands as it stood before: by the source that was not forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.integration.keyed_harness import (
    ANNA,
    Keyed,
    by_source,
    keyed,
)
from tests.integration.repointing_harness import AGAIN, HOME, current, twice

__all__ = ["keyed"]


@pytest.mark.parametrize("forgotten", ["acme/told-first", "acme/told-last"])
def test_restore_leaves_the_fact_by_the_source_that_stays(keyed: Keyed, forgotten: str) -> None:
    twice(keyed)
    before = keyed.told()
    order = keyed.order(by_source(forgotten))
    keyed.run(order)
    ((_, version, value, source, expires),) = current(keyed)
    marks = keyed.revoke(order).tombstones
    assert keyed.restore(order, before) == 1
    ((_, again, *told),) = current(keyed)
    assert told == [value, source, expires]
    assert again >= version
    assert keyed.look(order).remaining == 0
    keyed.restore(replace(order), keyed.told(), 3)
    assert [row[2:] for row in current(keyed)] == [(value, source, expires)], "and after another one"
    assert marks == keyed.revoke(order).tombstones


def test_restore_brings_nothing_back_that_both_sources_told(keyed: Keyed) -> None:
    twice(keyed)
    before = keyed.told()
    first, last = keyed.order(by_source("acme/told-first")), keyed.order(by_source("acme/told-last"))
    keyed.run(last)
    keyed.run(first)
    assert current(keyed) == []
    marks = [("acme", order.job, mark) for order in (first, last) for mark in keyed.revoke(order).tombstones]
    keyed.restore(last, before)
    assert [row[3] for row in current(keyed)] == ["acme/told-first"], "of one job alone it stays by the other"
    keyed.adapter.restore(None, marks, lambda: 3)
    assert keyed.rows("SELECT * FROM facts") == []


def test_text_of_a_fact_that_stands_in_an_event_is_not_marked(keyed: Keyed) -> None:
    keyed.put(ANNA, "home", HOME, "turn-1")
    event = keyed.prefer(ANNA, "home", AGAIN, "turn-2")
    before = keyed.told()
    order = keyed.order(by_source("turn-1"))
    keyed.run(order)
    assert keyed.kept(event) == [("live", AGAIN)]
    keyed.restore(order, before)
    assert keyed.kept(event) == [("live", AGAIN)], "a restore leaves it as well"
