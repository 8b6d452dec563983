"""Nobody else notices: what every other person has in each store is byte for byte what it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import WITNESS, goes, packed, tellings
from adapters.demo.stage import Stage
from adapters.demo.world import World

_CHANGED_FACT: Final = "UPDATE facts SET confirmed = 0 WHERE tenant = ? AND key = 'key-05'"
_TURNED: Final = "UPDATE vector_points SET vector = zeroblob(length(vector)) WHERE tenant = ?"
_DROPPED: Final = "DELETE FROM drafts WHERE tenant = ?"
_GOING: Final = frozenset(packed(telling.text) for telling in tellings() if goes(telling.text))
"""Vectors of those who are forgotten."""


def _facts(stage: Stage) -> tuple[bool, str]:
    return _identical(stage.told.before.facts, sight.facts(stage.world.source))


def _vectors(stage: Stage) -> tuple[bool, str]:
    return _identical(stage.told.before.points, sight.points(stage.world.vectors))


def _answers(stage: Stage) -> tuple[bool, str]:
    return _identical(stage.told.before.answers, sight.answers(stage.world.cache.client()))


def _drafts(stage: Stage) -> tuple[bool, str]:
    return _identical(stage.told.before.drafts, sight.drafts(stage.world.source))


def _identical(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> tuple[bool, str]:
    expected = {handle: row for handle, row in before.items() if not _is_of_somebody_forgotten(row)}
    changed = sum(after.get(handle) != row for handle, row in expected.items())
    return changed == 0 < len(expected), f"{changed} of {len(expected)} changed"


def _is_of_somebody_forgotten(row: Any) -> bool:  # noqa: ANN401 - a row or an entry
    return goes(row) or (isinstance(row, tuple) and row[-1] in _GOING)


def _change_a_fact(world: World) -> None:
    with sight.database(world.source) as source:
        source.execute(_CHANGED_FACT, (WITNESS.tenant,))


def _turn_the_points(world: World) -> None:
    with sight.database(world.vectors) as vectors:
        vectors.execute(_TURNED, (WITNESS.tenant,))


def _drop_answers(world: World) -> None:
    fact = world.memory.store.current(WITNESS)[0]
    client: Any = world.cache.client()
    answers = sight.answers(client)
    client.delete(*(key for key, entry in answers.items() if fact.id.encode() in b"".join(entry.values())))


def _drop_drafts(world: World) -> None:
    with sight.database(world.source) as source:
        source.execute(_DROPPED, (WITNESS.tenant,))


CHECKS: Final = (
    Check(name="other_facts_are_identical", look=_facts, plant=_change_a_fact),
    Check(name="other_vectors_are_identical", look=_vectors, plant=_turn_the_points),
    Check(name="other_answers_are_identical", look=_answers, plant=_drop_answers),
    Check(name="other_drafts_are_identical", look=_drafts, plant=_drop_drafts),
)
