"""`expunge init`, `migrate`, `doctor`, `adapters` and `up`: from nothing to running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import structlog
import typer

from orchestrator import doctor as diagnosis
from orchestrator import embedded, settings
from orchestrator.cli.options import AsJson, StateDir, opened, show
from orchestrator.domain.errors import ExpungeError
from orchestrator.initialise import DEFAULT, SECTIONS, initialise, used_store
from orchestrator.registry import installed
from orchestrator.state_directory import held
from orchestrator.store import migrate as schema

STOP_SECONDS = 30
RESTART_PAUSE = 1.0


def add_to(app: typer.Typer) -> None:
    """Add the commands of this family."""
    app.command(epilog="Example: expunge init --store memory --store vector --store cache")(init)
    app.command(epilog="Example: expunge migrate --dir .expunge")(migrate)
    app.command(epilog="Example: expunge doctor --json")(doctor)
    app.command(epilog="Example: expunge adapters")(adapters)
    app.command(epilog="Example: expunge up --workers 2")(up)


def init(
    stores: Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            metavar="NAME",
            help=f"Enable this store, once for each: {', '.join(SECTIONS)}. Without it: {', '.join(DEFAULT)}.",
        ),
    ] = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Write a state directory: configuration, keys and the control database. What is there stays."""
    where = settings.state_dir(directory)
    written = [str(path) for path in initialise(where, stores)]
    # Where a store holds data, a missing control database was lost: an empty one must not take its place unseen.
    with opened(where, create=used_store(settings.read(where)) is None) as control:
        schema.upgrade(control.database)
    lines = [f"wrote {path}" for path in written] + [f"ready: expunge up --dir {where}"]
    show({"state_dir": str(where), "written": written, "schema": schema.newest()}, lines, as_json=as_json)


def migrate(directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Bring the control database to the schema of this release; a second run changes nothing."""
    with opened(directory, create=True) as control:
        needed = schema.pending(control.database)
        schema.upgrade(control.database)
    show({"schema": schema.newest(), "changed": needed}, [f"schema {schema.newest()}"], as_json=as_json)


def doctor(directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Look at everything that a deployment rests on; exit 1 if anything is red."""
    checks = diagnosis.examine(settings.state_dir(directory))
    lines = [f"{'ok ' if c.ok else 'RED'}  {c.name}: {c.detail}" for c in checks]
    fine = all(c.ok for c in checks)
    document = {"ok": fine, "checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in checks]}
    show(document, lines, as_json=as_json)
    raise typer.Exit(0 if fine else 1)


def adapters(directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """List every installed adapter with its distribution and version, and whether the state directory enables it."""
    where = settings.state_dir(directory)
    # What is installed can be asked before there is a state directory.
    enabled = settings.read(where).adapters if directory is not None or (where / settings.FILE).is_file() else {}
    found = [
        {
            "name": name,
            "distribution": point.dist.name if point.dist else "unknown",
            "version": point.dist.version if point.dist else "unknown",
            "enabled": name in enabled,
        }
        for name, point in sorted(installed().items())
    ]
    lines = [f"{a['name']}  {a['distribution']} {a['version']}{'  enabled' if a['enabled'] else ''}" for a in found]
    show({"adapters": found}, lines, as_json=as_json)


def up(
    directory: StateDir = None,
    workers: Annotated[int, typer.Option(min=0, max=64, help="Worker processes; 0: start them yourself.")] = 1,
) -> None:
    """Run dispatcher, workers and embedded services until SIGTERM or Ctrl-C; what dies is started again."""
    where = settings.state_dir(directory)
    refusal = f"`expunge up` runs already on {where}: stop that one first, or add workers with `expunge worker`"
    with held(settings.read(where).state_dir / embedded.LOCK, refusal):
        with opened(where) as control:
            schema.upgrade(control.database)
            services = {f"service-{name}": command for name, command in embedded.services(control.settings).items()}
        run = [sys.executable, "-m", "orchestrator.cli"]
        ours = ["--dir", str(where), "--parent", str(os.getpid())]
        commands = {**services, "dispatcher": [*run, "dispatcher", *ours]}
        commands |= {f"worker-{n}": [*run, "worker", *ours] for n in range(1, workers + 1)}
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
        _supervise(commands, over)


def _supervise(commands: dict[str, list[str]], over: threading.Event) -> None:
    log = structlog.get_logger()
    running: dict[str, subprocess.Popen[bytes]] = {}
    next_start = dict.fromkeys(commands, 0.0)
    environment = settings.environment(REMAP_SIGTERM="SIGQUIT")
    try:
        while not over.is_set():
            for name, command in commands.items():
                process = running.get(name)
                if process is not None and process.poll() is not None:
                    log.warning("process.ended", process=name, status=process.returncode)
                    del running[name]
                    next_start[name] = time.monotonic() + RESTART_PAUSE
                if name not in running and time.monotonic() >= next_start[name]:
                    running[name] = _start(command, environment)
                    log.info("process.started", process=name, pid=running[name].pid)
            over.wait(0.1)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    try:
        # A group of its own: Ctrl-C reaches us alone, and we stop the others in order.
        return subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603 - our own command
    except OSError as error:
        message = f"cannot start {Path(command[0]).name}: {error.strerror}"
        raise ExpungeError(message) from None
