"""Nothing of what was forgotten lies in the files of the stores: counted byte by byte, with a control that is seen.

The faults leave bytes as a program does whose SQLite overwrites nothing, or a file that nobody knows of.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import SECRET, packed
from adapters.demo.stage import Stage
from adapters.demo.traces import traces
from adapters.demo.world import World

PHYSICAL: Final = ("memory", "vector", "drafts")
"""Stores whose jobs are verified only when the bytes of their files were looked at, as init configures them."""
_REACHED: Final = """SELECT adapter, reach, count(*) FROM deletion_receipts WHERE phase = 'verify'
    AND adapter IN ('memory', 'vector', 'drafts') AND outcome = 'absent' AND expected > 0
    GROUP BY 1, 2"""
_LESS_FAR: Final = """UPDATE deletion_receipts SET reach = 'logical', scrub_run_id = NULL WHERE id =
    (SELECT id FROM deletion_receipts WHERE phase = 'verify' AND adapter = 'vector' AND reach = 'physical' LIMIT 1)"""


def _hold_nothing(store: str, stage: Stage) -> tuple[bool, str]:
    before, after = stage.told.traces[store], traces(stage.world, store)
    control = "seen" if after.control else "NOT SEEN"
    return after.gone == 0 < after.control, f"{after.gone} of {before.gone} traces are left; control: {control}"


def _receipts_reach_bytes(stage: Stage) -> tuple[bool, str]:
    told = stage.ledger(_REACHED)
    reached = {store: {reach for adapter, reach, _ in told if adapter == store} for store in PHYSICAL}
    looks = sum(count for _, _, count in told)
    detail = ", ".join(f"{store} {'/'.join(sorted(some)) or 'nothing'}" for store, some in reached.items())
    return all(some == {"physical"} for some in reached.values()), f"{looks} looks: {detail}"


def _leave_in(path: Path, value: str | bytes) -> None:
    with sight.database(path) as database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE of_somebody (value)")
        database.execute("INSERT INTO of_somebody VALUES (?)", (value,))
        database.commit()
        database.execute("DROP TABLE of_somebody")


def _leave_a_text(world: World) -> None:
    _leave_in(world.source, SECRET)


def _leave_a_vector(world: World) -> None:
    _leave_in(world.vectors, packed(SECRET))


def _leave_a_file(world: World) -> None:
    (world.copies / "before-the-upgrade.bak").write_text(SECRET)


def _reach_less_far(world: World) -> None:
    with sight.database(world.ledger) as ledger:
        ledger.execute("DROP TRIGGER receipts_no_update")
        ledger.execute(_LESS_FAR)


CHECKS: Final = (
    Check(name="memory_files_hold_nothing", look=partial(_hold_nothing, "memory"), plant=_leave_a_text),
    Check(name="vector_files_hold_nothing", look=partial(_hold_nothing, "vector"), plant=_leave_a_vector),
    Check(name="backup_files_hold_nothing", look=partial(_hold_nothing, "backup"), plant=_leave_a_file),
    Check(name="receipts_reach_physical", look=_receipts_reach_bytes, plant=_reach_less_far),
)
