"""The two long-running processes: `expunge worker` and `expunge dispatcher`."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import sqlalchemy as sa
import structlog
import typer

from orchestrator import logs
from orchestrator.bootstrap import Control, open_control, open_engine
from orchestrator.domain.errors import InvalidRequest
from orchestrator.service import dispatch
from orchestrator.settings import keep_temporary_files_in, state_dir

LONGEST_PAUSE = 60.0
LOOK_AT_PARENT = 0.5

Parent = Annotated[int | None, typer.Option(hidden=True, help="Stop when this process is no longer our parent.")]
StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]


class Pool(StrEnum):
    """What runs the batches of a worker."""

    THREADS = "threads"
    PREFORK = "prefork"


def worker(
    directory: StateDir = None,
    adapters: Annotated[str | None, typer.Option(help="Serve only these adapters, separated by commas.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Threads or child processes that run batches.")] = 4,
    pool: Annotated[Pool, typer.Option(help="Threads share this process; prefork gives each batch runner its own.")] = (
        Pool.THREADS
    ),
    parent: Parent = None,
) -> None:
    """Run a worker: it claims due units and calls the stores. Stops at SIGTERM when its batches are done.

    Example: expunge worker --adapters memory,drafts --concurrency 8
    """
    # Celery loads in the processes that use it, and not for every command.
    from workers.celery_app import build, queue  # noqa: PLC0415
    from workers.tasks import register  # noqa: PLC0415

    control = _opened(directory)
    enabled = list(control.settings.adapters)
    names = enabled if adapters is None else [name.strip() for name in adapters.split(",") if name.strip()]
    if not names:
        message = f"there is no adapter to serve: --adapters takes some of: {', '.join(enabled)}"
        raise InvalidRequest(message, field="adapters")
    unknown = [name for name in names if name not in control.settings.adapters]
    if unknown:
        message = f"adapter {unknown[0]!r} is not enabled (enabled: {', '.join(control.settings.adapters)})"
        raise InvalidRequest(message, field="adapters")
    # Message bodies pass through temporary files.
    keep_temporary_files_in(control.settings.state_dir / "tmp")
    _stop_with(parent)
    logs.take_warnings()
    # A child opens connections of its own: those of its parent must not be shared.
    engine = functools.cache(functools.partial(open_engine, control, names))
    app = build(control.settings)
    register(app, engine)
    with contextlib.ExitStack() as opened:
        opened.callback(control.close)
        if pool is Pool.THREADS:  # a store that cannot be opened is told now, not by the first batch
            for adapter in engine().adapters.values():
                opened.callback(adapter.close)
        celery_worker = app.Worker(
            # By default all workers of a machine have one name, and RabbitMQ gives the queue of a name to one of them:
            # the next would be refused and end.
            hostname=f"{uuid4()}@{socket.gethostname()}",
            pool=pool.value,
            concurrency=concurrency,
            queues=[queue(name) for name in names],
            loglevel="WARNING",
            quiet=True,  # its banner is no log line
            # Workers need not know of each other: SQL tells each what is due.
            without_gossip=True,
            without_mingle=True,
        )
        celery_worker.start()
    # Celery gives up by returning: who started us must see it.
    raise typer.Exit(celery_worker.exitcode or 0)


def dispatcher(directory: StateDir = None, parent: Parent = None) -> None:
    """Run the dispatcher: it takes back ended leases, moves jobs and wakes workers. Several are harmless.

    Example: expunge dispatcher --dir .expunge
    """
    control = _opened(directory)
    # Message bodies pass through temporary files.
    keep_temporary_files_in(control.settings.state_dir / "tmp")
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    _stop_with(parent)
    try:
        run_dispatcher(control, over)
    finally:
        control.close()


def run_dispatcher(control: Control, over: threading.Event) -> None:
    """Announce at every interval and sweep at every third of a lease, until `over` is set.

    Jobs end in workers and commands as well, so the log of the database, where raw ids outlive
    the rows that held them, is emptied after every sweep, and tried again until it is. From time
    to time the file itself is rewritten: pages that were written to again may keep some of them.
    """
    from workers.celery_app import CeleryBroker, build  # noqa: PLC0415 - as in `worker`

    log = structlog.get_logger()
    broker = CeleryBroker(build(control.settings))
    engine, next_sweep, emptied = control.settings.engine, 0.0, False
    next_scrub = time.monotonic() + engine.control_scrub.total_seconds()
    failures, next_line, line_pause = 0, 0.0, 1.0
    while not over.is_set():
        try:
            if time.monotonic() >= next_sweep:
                dispatch.sweep(control.ledger, control.ledger.crash, log)
                next_sweep, emptied = time.monotonic() + engine.lease.total_seconds() / 3, False
            dispatch.announce(control.ledger, broker, control.ledger.crash)
            emptied = emptied or control.empty_log()
            if time.monotonic() >= next_scrub:
                next_scrub = time.monotonic() + engine.control_scrub.total_seconds()
                log.info("control.scrubbed", outcome=control.scrub())
        except Exception as error:  # noqa: BLE001 - a database or broker that is away for a while must not end us
            failures += 1
            # The first is news; a store that stays away is told of ever less often, and tried as often as before.
            if time.monotonic() >= next_line:
                log.warning("dispatch.failed", error=type(error).__name__, failures=failures)
                next_line, line_pause = time.monotonic() + line_pause, min(line_pause * 2, LONGEST_PAUSE)
        else:
            if failures:
                log.info("dispatch.recovered", failures=failures)
            failures, next_line, line_pause = 0, 0.0, 1.0
        over.wait(engine.dispatch_interval.total_seconds())


def _opened(directory: Path | None) -> Control:
    """Open the control database: one that is away may come back, one that is none is told now."""
    control = open_control(state_dir(directory), create=False)
    with contextlib.suppress(sa.exc.OperationalError), control.database.connect():
        pass
    return control


def _stop_with(parent: int | None) -> None:
    """Stop this process as SIGTERM does when its parent has died without a word."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_AT_PARENT)
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=look, name="parent", daemon=True).start()
