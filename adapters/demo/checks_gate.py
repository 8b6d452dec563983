"""The gate: what was forgotten is not learned again from an old source, and what is said anew may be stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import READER, SECRET_KEY, SOURCE
from adapters.demo.stage import Stage
from adapters.demo.world import World
from orchestrator import Gate, GateRefused, Keyring

NEW_STATEMENT: Final = "I travel with a new passport now."
_STORED: Final = "SELECT count(*) FROM facts WHERE key = ? AND value = ? AND active = 1"
_BLOCK: Final = """INSERT INTO source_tombstones (tenant, key_id, mac, kind, job, cut_off)
    VALUES (?, ?, ?, ?, 'demo', ?)"""


def _transcript_is_refused(stage: Stage) -> tuple[bool, str]:
    """Extract the old transcript again, and offer a summary of it: the file itself lies outside the stores."""
    store = stage.world.memory.store
    offers: dict[str, Callable[[], object]] = {
        "transcript": lambda: store.put(READER, SECRET_KEY, stage.world.transcript.read_text(), SOURCE),
        "summary": lambda: store.register_source(READER, "trip-planning/summary-1", derived_from=[SOURCE]),
    }
    refused = dict[str, str]()
    for name, offer in offers.items():
        try:
            offer()
        except GateRefused as error:
            refused[name] = error.refusal.value
    return refused.keys() == offers.keys(), "; ".join(
        f"{name}: {refused.get(name, 'LEARNED AGAIN')}" for name in offers
    )


def _fresh_statement_is_admitted(stage: Stage) -> tuple[bool, str]:
    store = stage.world.memory.store
    try:
        store.register_source(READER, "trip-planning/turn-31")
        version = store.put(READER, SECRET_KEY, NEW_STATEMENT, "trip-planning/turn-31", user_statement=True)
    except GateRefused as refused:
        return False, f"refused: {refused.refusal.value}"
    ((stored,),) = sight.read(stage.world.source, _STORED, SECRET_KEY, NEW_STATEMENT)
    return stored == 1, f"stored as version {version}, {stored} row"


def _drop_the_tombstones(world: World) -> None:
    with sight.database(world.source) as source:
        source.execute("DELETE FROM source_tombstones")


def _block_the_subject(world: World) -> None:
    keys = (world.folder / "state" / "keys" / "tombstone.json").read_text()
    tombstone = Gate(Keyring.parse(keys)).for_subject(READER, 10**9)
    with sight.database(world.source) as source:
        row = (READER.tenant, tombstone.key_id, tombstone.mac, tombstone.kind.value, tombstone.cut_off)
        source.execute(_BLOCK, row)


CHECKS: Final = (
    Check(name="transcript_is_refused", look=_transcript_is_refused, plant=_drop_the_tombstones),
    Check(name="fresh_statement_is_admitted", look=_fresh_statement_is_admitted, plant=_block_the_subject),
)
