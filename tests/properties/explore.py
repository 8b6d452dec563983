"""`make schedules`: the five stores under schedules of new seeds, until one breaks a property or all were tried."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import structlog

from orchestrator import logs
from tests.properties.test_five_schedules import explore, run
from tests.properties.writers import QUIET
from tests.servers import fake_redis


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; without it a new one")
    asked = parser.parse_args()
    os.environ["EXPUNGE_ENGINE__QUIET_TIME"] = f"{QUIET.seconds}s"
    logs.configure = lambda form: None  # noqa: ARG005 - its own would write a line for each step
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    first = secrets.randbits(32) if asked.seed is None else asked.seed
    began, seen = time.monotonic(), Counter[str]()
    with fake_redis() as url, tempfile.TemporaryDirectory() as folder:
        for n in range(asked.schedules):
            sys.stdout.write(f"\rseed {first + n}: {n + 1} of {asked.schedules}, {time.monotonic() - began:.0f} s")
            sys.stdout.flush()
            explore(first + n, partial(run, Path(folder) / "state", url, seen))
    sys.stdout.write("\n" + "".join(f"{times:7} {what}\n" for what, times in sorted(seen.items())))


if __name__ == "__main__":
    main()
