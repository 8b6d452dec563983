"""A legal hold: while it stands nothing that it covers is changed, and afterwards the job goes on by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import CLIENT, OF_SUBJECT
from adapters.demo.stage import Stage
from adapters.demo.world import Snapshot, World

_RELEASED: Final = "SELECT released_at_us FROM legal_holds WHERE id = ?"
_FIRST: Final = "SELECT min(started_at_us), max(finished_at_us) FROM deletion_receipts WHERE job_id = ?"
_LATER: Final = "UPDATE legal_holds SET released_at_us = released_at_us + 3600000000"


def _hold_keeps_everything(stage: Stage) -> tuple[bool, str]:
    before, after = (_covered(snapshot) for snapshot in stage.told.held)
    changed = sum(after.get(handle) != row for handle, row in before.items()) + len(after.keys() - before.keys())
    good = changed == 0 < len(before) and stage.told.waiting == "requested"
    return good, f"{changed} of {len(before)} rows and entries changed; its job: {stage.told.waiting}"


def _held_job_goes_on_by_itself(stage: Stage) -> tuple[bool, str]:
    ((released,),) = stage.ledger(_RELEASED, stage.told.hold)
    ((began, ended),) = stage.ledger(_FIRST, stage.told.jobs["subject"])
    took = f"verified {(ended - released) / 1e6:.1f} s after it was lifted"
    return released <= began, f"begun {'after' if released <= began else 'BEFORE'} the hold was lifted; {took}"


def _covered(snapshot: Snapshot) -> Mapping[Any, Any]:
    """Give what is of the held subject: by owner where a row names one, by its texts where an entry does not."""
    rows = {**snapshot.facts, **snapshot.points, **snapshot.drafts}
    owned = {handle: row for handle, row in rows.items() if row[:2] == (CLIENT.tenant, CLIENT.user)}
    return {**owned, **{key: entry for key, entry in snapshot.answers.items() if OF_SUBJECT in str(entry)}}


def _lift_it_later(world: World) -> None:
    with sight.database(world.ledger) as ledger:
        ledger.execute(_LATER)


CHECKS: Final = (
    Check(name="hold_keeps_everything", look=_hold_keeps_everything),
    Check(name="held_job_goes_on_by_itself", look=_held_job_goes_on_by_itself, plant=_lift_it_later),
)
