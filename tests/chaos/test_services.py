"""Brokers and databases that go away while jobs run, with real servers and real processes: nothing is lost."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import redis
from kombu.connection import Connection

from orchestrator.domain.unit import Phase
from tests.chaos.people import Raw, file, judge, populate, raw, rows
from tests.chaos.setups import Deployment, deployment
from workers.celery_app import CeleryBroker, build

JOBS = 24
Trouble: TypeAlias = Callable[[Deployment], None]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder outside of pytest's own, which root's PostgreSQL cannot enter."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def settled(stage: Deployment, before: Raw) -> None:
    """Wait for every job's end, and let the oracle judge."""
    until = time.monotonic() + 90
    while rows(stage, "SELECT count(*) FROM deletion_jobs WHERE state <> 'completed'")[0][0]:
        assert time.monotonic() < until, rows(stage, "SELECT state, count(*) FROM deletion_jobs GROUP BY state")
        for (job,) in rows(stage, "SELECT DISTINCT job_id FROM deletion_units WHERE status = 'parked'"):
            stage.control.ledger.retry(job)
        time.sleep(0.1)
    judge(stage, before, JOBS, kills=10)


def under(stage: Deployment, trouble: Trouble) -> None:
    """File in three parts, with the trouble between the first and the second."""
    populate(stage, 0, JOBS)
    before = raw(stage)
    part = JOBS // 3
    for role in ("dispatcher", "dispatcher", "worker"):
        stage.processes.start(role)
    file(stage, 0, part)
    trouble(stage)
    file(stage, part, part)
    file(stage, 2 * part, part)
    settled(stage, before)


def broker_files_go(stage: Deployment) -> None:
    for _ in range(20):
        for message in (stage.state / "broker" / "messages").glob("*"):
            message.unlink(missing_ok=True)
        time.sleep(0.05)


def flush(stage: Deployment) -> None:
    with redis.Redis.from_url(stage.services["broker"].url) as client:
        for _ in range(20):
            client.flushall()
            time.sleep(0.05)


def redis_restarts(stage: Deployment) -> None:
    """Stop the broker, which keeps nothing on disk, and start it again."""
    time.sleep(1)
    stage.services["broker"].stop()
    time.sleep(1)
    stage.services["broker"].start()


def messages_come_thrice_and_in_any_order(stage: Deployment) -> None:
    broker = CeleryBroker(build(stage.control.settings))
    for phase in reversed(Phase):
        for adapter in ("cache", "memory"):
            for _ in range(3):
                broker.announce(adapter, phase)


def postgresql_restarts(stage: Deployment) -> None:
    server = stage.services["postgresql"]
    time.sleep(1)
    server.stop()
    time.sleep(1)
    server.ensure_postgres_running()


def rabbitmq_stops(stage: Deployment) -> None:
    time.sleep(1)
    stage.services["rabbitmq"].stop()
    time.sleep(1)
    stage.services["rabbitmq"].start()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("trouble", [broker_files_go, messages_come_thrice_and_in_any_order])
def test_folder_broker_loses_and_doubles_messages_and_no_job(folder: Path, trouble: Trouble) -> None:
    with deployment("sqlite-filesystem", folder) as stage:
        under(stage, trouble)


# A connection that its server has cut is dropped by the pool without being closed. It is collected here, where that is
# known, and not in whatever test runs when the collector does.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(180)
@pytest.mark.case(37)
@pytest.mark.parametrize("trouble", [flush, redis_restarts, messages_come_thrice_and_in_any_order, postgresql_restarts])
def test_redis_and_postgresql_lose_messages_and_connections_and_no_job(folder: Path, trouble: Trouble) -> None:
    with deployment("postgresql-redis", folder) as stage:
        under(stage, trouble)
    del stage
    gc.collect()


@pytest.mark.timeout(180)
def test_rabbitmq_stops_in_the_middle_and_no_job_is_lost(folder: Path) -> None:
    with deployment("postgresql-rabbitmq", folder) as stage:
        under(stage, rabbitmq_stops)


def consumers(url: str, queue: str) -> int:
    """Ask the broker how many workers take messages from a queue; it refuses where the queue is no quorum one."""
    arguments = {"x-queue-type": "quorum"}
    with Connection(url) as connection:  # type: ignore[no-untyped-call]
        declared = connection.default_channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
        return int(declared.consumer_count)


@pytest.mark.timeout(180)
def test_rabbitmq_takes_several_workers_of_one_machine_on_quorum_queues(folder: Path) -> None:
    with deployment("postgresql-rabbitmq", folder) as stage:
        workers = [stage.processes.start("worker") for _ in range(3)]
        until = time.monotonic() + 60
        while any(consumers(stage.services["rabbitmq"].url, f"expunge.{name}") < 3 for name in ("memory", "cache")):
            assert [worker.poll() for worker in workers] == [None] * 3
            assert time.monotonic() < until, "not every worker has come"
            time.sleep(0.2)
        assert [worker.poll() for worker in workers] == [None] * 3


@pytest.mark.timeout(180)
def test_worker_goes_on_when_the_broker_closes_its_channel(folder: Path) -> None:
    with deployment("postgresql-rabbitmq", folder) as stage:
        url = stage.services["rabbitmq"].url
        with Connection(url) as connection:  # type: ignore[no-untyped-call]
            # Of another type than the worker declares: the broker refuses, and closes the channel.
            connection.default_channel.queue_declare("expunge.memory", durable=True, auto_delete=False)
            worker = stage.processes.start("worker")
            time.sleep(6)
            assert worker.poll() is None
            connection.default_channel.queue_delete("expunge.memory")
        until = time.monotonic() + 60
        while consumers(url, "expunge.memory") < 1:
            assert worker.poll() is None
            assert time.monotonic() < until, "the worker has not come back"
            time.sleep(0.2)
