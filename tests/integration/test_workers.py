"""A real Celery worker in this process, woken over real brokers: fakeredis over TCP, redis-server, folders."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import structlog
from celery.contrib.testing.worker import start_worker

from orchestrator import Reason, Selector, SelectorKind
from orchestrator.bootstrap import open_control
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service import dispatch
from orchestrator.service.accept import Request, accept
from orchestrator.settings import Settings
from orchestrator.store import engine
from orchestrator.store.migrate import upgrade
from tests.fakes import ANNA, Bench, bench, fill
from tests.servers import broker_url as _broker_url
from tests.servers import redis_url as _redis_url
from workers.celery_app import CeleryBroker, build, queue
from workers.main import run_dispatcher
from workers.tasks import register

broker_url = _broker_url
redis_url = _redis_url


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path, lease=1)
    yield made
    made.ledger.engine.dispose()


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        threading.Event().wait(0.02)


def test_hint_wakes_a_worker_that_carries_the_job_to_its_end(stage: Bench, broker_url: str, tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, broker_url=broker_url)
    app: Any = build(settings)
    register(app, lambda: stage.engine)
    fill(stage)
    job = stage.file()
    with start_worker(
        app, pool="threads", concurrency=2, perform_ping_check=False, queues=[queue("source"), queue("copies")]
    ):
        dispatch.announce(stage.ledger, CeleryBroker(app), stage.ledger.crash)
        until(lambda: stage.view(job).state is JobState.COMPLETED)
    app.close()
    assert stage.source.records == stage.copies.records == set()


@pytest.mark.req("R137")
def test_hint_that_the_broker_lost_is_sent_again(stage: Bench, broker_url: str, tmp_path: Path) -> None:
    app: Any = build(Settings(state_dir=tmp_path, broker_url=broker_url))
    register(app, lambda: stage.engine)
    fill(stage)
    job = stage.file()
    broker = CeleryBroker(app)
    assert dispatch.announce(stage.ledger, broker, stage.ledger.crash) == 1
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge(queue("source"))
    with start_worker(app, pool="solo", perform_ping_check=False, queues=[queue("source"), queue("copies")]):
        log = structlog.get_logger()

        def turn() -> bool:
            dispatch.sweep(stage.ledger, stage.ledger.crash, log)
            dispatch.announce(stage.ledger, broker, stage.ledger.crash)
            return stage.view(job).state is JobState.COMPLETED

        until(turn)
    app.close()


def test_message_carries_names_of_adapter_and_phase_alone(stage: Bench, redis_url: str, tmp_path: Path) -> None:
    app: Any = build(Settings(state_dir=tmp_path, broker_url=redis_url))
    fill(stage)
    stage.file("P1234567")
    dispatch.announce(stage.ledger, CeleryBroker(app), stage.ledger.crash)
    app.close()
    with redis.Redis.from_url(redis_url) as client:
        (body,) = client.lrange(queue("source"), 0, -1)
    assert json.loads(body)["headers"]["argsrepr"] == "('source', 'revoke')"
    for word in (ANNA.user, "P1234567"):
        assert word.encode() not in body


def raw(state: Path) -> bytes:
    return b"".join(path.read_bytes() for path in state.glob("orchestrator.db*"))


@pytest.mark.req("R134")
def test_dispatcher_empties_the_log_of_the_database_as_soon_as_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that ended elsewhere leaves its raw ids in the log; a reader keeps the log from being emptied at first."""
    monkeypatch.setenv("EXPUNGE_ENGINE__LEASE", "100s")  # no second sweep comes to help
    initialise(tmp_path)
    control = open_control(tmp_path)
    upgrade(control.database)
    selector = Selector(kind=SelectorKind.KEY, value="P1234567")
    asked = Request(scope=ANNA, selector=selector, reason=Reason.OPERATOR, requested_by="tester")
    job, _ = accept(asked, control.acceptance)
    assert control.empty_log()
    reader = sqlite3.connect(tmp_path / "orchestrator.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM deletion_jobs").fetchone()
    control.ledger.cancel(str(job))
    over = threading.Event()
    thread = threading.Thread(target=run_dispatcher, args=(control, over))
    thread.start()
    try:
        threading.Event().wait(1)
        assert b"P1234567" in raw(tmp_path), "the reader still sees the job as it was"
        reader.close()
        until(lambda: b"P1234567" not in raw(tmp_path), seconds=5)
    finally:
        over.set()
        thread.join()
        reader.close()
        pragmas = engine.pragmas(control.database)
        control.close()
    assert pragmas["busy_timeout"] == 30000


def test_other_databases_have_no_log_to_empty() -> None:
    assert engine.checkpoint(engine.open_database("postgresql+psycopg://nobody@127.0.0.1:1/none"))
