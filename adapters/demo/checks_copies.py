"""Backup copies: one was rewritten without what is to go, the other one was left to its time and waited for."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import WITNESS, goes
from adapters.demo.stage import Stage
from adapters.demo.world import World

_WINDOWS: Final = """SELECT w.until_us, w.closed_at_us, j.verified_at_us, j.completed_at_us
    FROM retention_windows AS w JOIN deletion_jobs AS j ON j.id = w.job_id WHERE j.id = ?"""
_CHANGED: Final = "UPDATE facts SET value = 'changed' WHERE tenant = ? AND key = 'key-05'"
_TOO_EARLY: Final = "UPDATE retention_windows SET closed_at_us = until_us - 1"


def _rewritten_copy_keeps_the_others(stage: Stage) -> tuple[bool, str]:
    path = stage.world.copies / stage.told.rewritten
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as copy:
        sound = copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    kept, expected = sight.facts(path), {h: row for h, row in stage.told.before.facts.items() if not goes(row)}
    changed = len(kept.items() ^ expected.items())
    return sound and changed == 0 < len(expected), f"sound: {sound}; {changed} of {len(expected)} facts differ"


def _window_was_waited_for(stage: Stage) -> tuple[bool, str]:
    windows = stage.ledger(_WINDOWS, stage.told.jobs["key"])
    good = [verified < until <= closed <= completed for until, closed, verified, completed in windows]
    lived = [f"verified {(until - verified) / 1e6:.1f} s before its end" for until, _, verified, _ in windows]
    return good == [True], "; ".join([f"{sum(good)} of {len(good)} windows closed in time", *lived])


def _status_tells_the_date(stage: Stage) -> tuple[bool, str]:
    manifest = json.loads((stage.world.copies / "manifest.json").read_text())
    kept = [datetime.fromisoformat(c["keep_until"]) for c in manifest["copies"] if c["file"] == stage.told.kept]
    said = [datetime.fromisoformat(window["until"]) for window in stage.told.status.get("windows", [])]
    state = stage.told.status.get("state")
    same = len(said) == len(kept) == 1 and abs(said[0] - kept[0]) < timedelta(milliseconds=1)
    return same and state == "verified", f"said while it was kept: {state}, {len(said)} date, the manifest's: {same}"


def _copy_is_gone(stage: Stage) -> tuple[bool, str]:
    there = [
        file.name for file in stage.world.copies.rglob("*") if file.suffix == ".db" and not file.name.startswith(".")
    ]
    return there == [stage.told.rewritten], f"copies in the folder: {len(there)}, before its end 2"


def _change_in_the_copy(world: World) -> None:
    for copy in world.copies.glob("*.db"):
        if not copy.name.startswith("."):
            with sight.database(copy) as database:
                database.execute(_CHANGED, (WITNESS.tenant,))


def _close_too_early(world: World) -> None:
    with sight.database(world.ledger) as ledger:
        ledger.execute(_TOO_EARLY)


def _give_another_date(world: World) -> None:
    path = world.copies / "manifest.json"
    manifest = json.loads(path.read_text())
    for copy in manifest["copies"]:
        if copy.get("keep_until") is not None:
            copy["keep_until"] = "2036-01-31T03:00:00Z"
    path.write_text(json.dumps(manifest))


def _put_the_copy_back(world: World) -> None:
    (world.copies / "once-more.db").write_bytes(b"")


CHECKS: Final = (
    Check(name="rewritten_copy_keeps_the_others", look=_rewritten_copy_keeps_the_others, plant=_change_in_the_copy),
    Check(name="window_was_waited_for", look=_window_was_waited_for, plant=_close_too_early),
    Check(name="status_tells_the_date", look=_status_tells_the_date, plant=_give_another_date),
    Check(name="copy_of_the_window_is_gone", look=_copy_is_gone, plant=_put_the_copy_back),
)
