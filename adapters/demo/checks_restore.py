"""A restore: the source goes back to a copy from before, and nobody who was forgotten comes back with it.

It comes last, because it takes away what the other checks have stored.
"""

from __future__ import annotations

from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import CLIENT, WITNESS, goes
from adapters.demo.stage import Stage
from adapters.demo.traces import traces
from adapters.demo.world import World

_CHANGED: Final = "UPDATE facts SET value = 'changed' WHERE tenant = ? AND key = 'key-05'"


def _restore_brings_nobody_back(stage: Stage) -> tuple[bool, str]:
    held = sum(map(goes, sight.facts(stage.world.set_aside).values()))
    code, _ = stage.processes.run("restore", str(stage.world.set_aside), "--yes", "--json")
    rows = sight.facts(stage.world.source).values()
    back = sum(goes(row) or row[:2] == (CLIENT.tenant, CLIENT.user) for row in rows)
    seen = traces(stage.world, "memory")
    good = code == 0 and back == seen.gone == 0 < held and seen.control > 0
    return good, f"{back} of {held} forgotten facts came back, {seen.gone} traces in the files; exit code {code}"


def _restore_keeps_the_others(stage: Stage) -> tuple[bool, str]:
    expected = {handle: row for handle, row in stage.told.before.facts.items() if not goes(row)}
    there = sight.facts(stage.world.source)
    changed = sum(there.get(handle) != row for handle, row in expected.items())
    return changed == 0 < len(expected), f"{changed} of {len(expected)} other facts changed"


def _lose_the_tombstones(world: World) -> None:
    with sight.database(world.ledger) as ledger:
        ledger.execute("DELETE FROM tombstones")


def _change_a_neighbour(world: World) -> None:
    with sight.database(world.source) as source:
        source.execute(_CHANGED, (WITNESS.tenant,))


CHECKS: Final = (
    Check(name="restore_brings_nobody_back", look=_restore_brings_nobody_back, plant=_lose_the_tombstones),
    Check(name="restore_keeps_the_others", look=_restore_keeps_the_others, plant=_change_a_neighbour),
)
