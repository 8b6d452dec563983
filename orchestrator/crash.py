"""Killing this very process at a named crash point: how tests show that nothing is lost.

`EXPUNGE_CRASH_AT=after_effect@cache.erase:2` kills at the second passing of that point in
that place; place and count may be left out. `expunge doctor` is red while it is set.
"""

from __future__ import annotations

import itertools
import os
import re
import signal

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.ports import Crash

_FORM = re.compile(r"(?P<point>[a-z_]+)(@(?P<place>[a-z0-9_.-]+))?(:(?P<count>[1-9][0-9]*))?")


def never(_point: CrashPoint, _place: str) -> None:
    """Pass every crash point."""


def crash_at(text: str | None) -> Crash:
    """Read the setting and give what is called at each crash point."""
    if text is None:
        return never
    form = _FORM.fullmatch(text)
    if form is None or form["point"] not in list(CrashPoint):
        message = f"EXPUNGE_CRASH_AT must be point[@adapter.phase][:n] with a point of: {', '.join(CrashPoint)}"
        raise InvalidRequest(message, field="EXPUNGE_CRASH_AT")
    passed = itertools.count(1)

    def crash(point: CrashPoint, place: str) -> None:
        here = point.value == form["point"] and form["place"] in {None, place}
        if here and next(passed) == int(form["count"] or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    return crash
