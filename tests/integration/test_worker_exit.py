"""What ends a worker is its exit status: who started it must see that it gave up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.bootstrap import open_control
from orchestrator.initialise import initialise
from orchestrator.store.migrate import upgrade

# A worker with a part that cannot start, or that asks for the end: in a process of its own, whose signals are its own.
WORKER = """
import sys
from pathlib import Path
import typer
from celery import bootsteps
from workers import celery_app, main

class Ends(bootsteps.StartStopStep):
    def start(self, parent):
        raise {error}

build = celery_app.build

def with_step(settings):
    app = build(settings)
    app.steps["worker"].add(Ends)
    return app

celery_app.build = with_step
try:
    main.worker(directory=Path(sys.argv[1]), adapters="memory")
except typer.Exit as ended:
    sys.exit(ended.exit_code)
sys.exit(99)
"""


@pytest.mark.parametrize(("error", "status"), [("RuntimeError('no')", 1), ("SystemExit(0)", 0)])
def test_worker_that_gives_up_says_so_by_its_exit_status(tmp_path: Path, error: str, status: int) -> None:
    initialise(tmp_path)
    control = open_control(tmp_path)
    upgrade(control.database)
    control.close()
    command = [sys.executable, "-c", WORKER.format(error=error), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == status
