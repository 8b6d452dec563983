"""Killing this very process at a named crash point: how tests show that nothing is lost.

`EXPUNGE_CRASH_AT=after_effect@cache.erase:2` kills at the second passing of that point in
that place; place and count may be left out. A `!` at the end lets one process of the state
directory die and spares the children that take its place. `expunge doctor` is red while it
is set.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from pathlib import Path

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.ports import Crash

_FORM = re.compile(r"(?P<point>[a-z_]+)(@(?P<place>[a-z0-9_.-]+))?(:(?P<count>[1-9][0-9]*))?(?P<once>!)?")
MARKER = "crashed"


def never(_point: CrashPoint, _place: str) -> None:
    """Pass every crash point."""


def crash_at(text: str | None, state_dir: Path) -> Crash:
    """Read the setting and give what is called at each crash point; raises `InvalidRequest` for one of another form."""
    if text is None:
        return never
    form = _FORM.fullmatch(text)
    if form is None or form["point"] not in list(CrashPoint):
        message = f"EXPUNGE_CRASH_AT must be point[@adapter.phase][:n][!] with a point of: {', '.join(CrashPoint)}"
        raise InvalidRequest(message, field="EXPUNGE_CRASH_AT")
    passed = itertools.count(1)

    def crash(point: CrashPoint, place: str) -> None:
        here = point.value == form["point"] and form["place"] in {None, place}
        if here and next(passed) == int(form["count"] or 1) and (form["once"] is None or _first(state_dir)):
            os.kill(os.getpid(), signal.SIGKILL)

    return crash


def _first(state_dir: Path) -> bool:
    """Tell whether nobody has died here yet: who makes the marker is the first."""
    try:
        (state_dir / MARKER).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
