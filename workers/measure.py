"""Measuring the product beside two scripts that people would write by hand, as ratios in one run.

Floor: for each subject and store one transaction that makes the same deletes, and nothing
else: no receipts, no gate, no second look. Tasks: the same deletes as one Celery task for
each unit of the product, worked off by one worker in this process.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psycopg
import sqlalchemy as sa
import structlog
from celery import Celery
from celery.contrib.testing.worker import start_worker
from sqlalchemy.exc import SQLAlchemyError

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from orchestrator import InvalidRequest, Reason, Scope, Selector, SelectorKind, Target, settings
from orchestrator.bootstrap import Control, initialise, open_control, open_engine
from orchestrator.service.accept import Request, accept_all
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade

FACTS = 3
FILED_TOGETHER = 500
CONTROL, MEMORY = "expunge_bench_control", "expunge_bench_memory"
# What one job of the product comes to with these stores: revoke, two passes of find, erase and verify.
UNITS = ("revoke", "find-memory", "find-cache", "erase-memory", "erase-cache", "verify-memory", "verify-cache")


def compare(subjects: int, repeats: int, tasks: int, redis_url: str, postgresql_url: str) -> dict[str, Any]:
    """Run every way on every database, in turn; give medians and their ratios."""
    places: dict[str, str | None] = {"sqlite": None}
    if postgresql_url:
        places["postgresql"] = postgresql_url
    answer: dict[str, Any] = {"subjects": subjects, "repeats": repeats, "ratio_to_floor": {}, "ratio_to_tasks": {}}
    answer["jobs_per_second"] = {}
    ways = {"floor": (floor, subjects), "product": (product, subjects), "tasks": (one_task_per_unit, tasks)}
    for name, url in places.items():
        runs: dict[str, list[float]] = {way: [] for way, (_, count) in ways.items() if count}
        with ExitStack() as stack:
            filled = {n: stack.enter_context(filling(url, redis_url, n)) for _, n in ways.values() if n}
            for _ in range(repeats):
                for way, rates in runs.items():
                    measure, count = ways[way]
                    with stores(filled[count]) as stage:
                        rates.append(count / measure(stage))
        speed = {way: statistics.median(rates) for way, rates in runs.items()}
        answer["jobs_per_second"][name] = {way: round(rate) for way, rate in speed.items()}
        answer["ratio_to_floor"][name] = round(speed["product"] / speed["floor"], 3)
        if tasks:
            answer["ratio_to_tasks"][name] = round(speed["product"] / speed["tasks"], 2)
    return answer


@dataclass(frozen=True)
class Stage:
    """Filled stores, and an engine over them."""

    control: Control
    engine: Engine
    memory: MemoryAdapter
    cache: CacheAdapter
    count: int
    closing: ExitStack


@dataclass(frozen=True)
class Filled:
    """Stores that were filled once and are copied for each run: filling takes longer than what is measured."""

    folder: Path
    server: str | None
    count: int
    answers: Sequence[tuple[bytes, bytes]]


@contextmanager
def filling(url: str | None, redis_url: str, count: int) -> Iterator[Filled]:
    """Fill stores for so many subjects."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "state"
        initialise(folder)
        path = folder / "expunge.toml"
        text = path.read_text().replace("redis://127.0.0.1:0/0", redis_url)
        if url is not None:
            text = text.replace("sqlite:///orchestrator.db", _named(url, CONTROL)).replace(
                "sqlite:///memory.db", _named(url, MEMORY)
            )
        path.write_text(text)
        with _databases(url), _open(folder, count) as stage:
            client: Any = stage.cache.client()
            client.flushdb()
            fill(stage)
            keys = list(client.scan_iter(count=1000))
            pipeline = client.pipeline(transaction=False)
            for key in keys:
                pipeline.dump(key)
            answers = list(zip(keys, pipeline.execute(), strict=True))
            for adapter in (stage.memory, stage.cache):
                adapter.close()
            if url is not None:
                stack.enter_context(database(url, _kept(count), like=MEMORY))
        yield Filled(folder, url, count, answers)


@contextmanager
def stores(filled: Filled) -> Iterator[Stage]:
    """Copy filled stores for one run."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "state"
        shutil.copytree(filled.folder, folder)
        stack.enter_context(_databases(filled.server, like=_kept(filled.count)))
        stage = stack.enter_context(_open(folder, filled.count))
        client: Any = stage.cache.client()
        client.flushdb()
        pipeline = client.pipeline(transaction=False)
        for key, value in filled.answers:
            pipeline.restore(key, 0, value)
        pipeline.execute()
        yield stage


@contextmanager
def _open(folder: Path, count: int) -> Iterator[Stage]:
    with ExitStack() as stack:
        control = open_control(folder)
        stack.callback(control.close)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        upgrade(control.database)
        engine = open_engine(control)
        memory, cache = cast("MemoryAdapter", engine.adapters["memory"]), cast("CacheAdapter", engine.adapters["cache"])
        for adapter in (memory, cache):
            stack.callback(adapter.close)
        yield Stage(control, engine, memory, cache, count, stack)


@contextmanager
def _databases(url: str | None, like: str | None = None) -> Iterator[None]:
    """Make the databases of one run on a server, the memory store's as a copy of another one; SQLite needs none."""
    if url is None:
        yield
        return
    with database(url, CONTROL), database(url, MEMORY, like=like):
        yield


@contextmanager
def database(url: str, name: str, *, like: str | None = None) -> Iterator[None]:
    """Make a database on a server, if wanted as a copy of another one, and drop it."""
    server = sa.create_engine(url, isolation_level="AUTOCOMMIT", hide_parameters=True)
    copied = "" if like is None else f" TEMPLATE {like}"
    try:
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")
            connection.exec_driver_sql(f"CREATE DATABASE {name}{copied}")
        yield
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    except SQLAlchemyError as error:
        message = f"the PostgreSQL server does not take it ({type(error).__name__})"
        raise InvalidRequest(message, field="postgresql-url") from None
    finally:
        server.dispose()


def _kept(count: int) -> str:
    return f"expunge_bench_filled_{count}"


def _named(url: str, name: str) -> str:
    return sa.make_url(url).set(database=name).render_as_string(hide_password=False)


def subject(n: int) -> Scope:
    """Name the n-th data subject."""
    return Scope(tenant="bench", user=f"user-{n}", project="p")


def fill(stage: Stage) -> None:
    """Give every subject facts, and a cached answer of each."""
    for n in range(stage.count):
        whose = subject(n)
        stage.memory.store.register_source(whose, f"{whose.user}/turn")
        for key in range(FACTS):
            stage.memory.store.put(whose, f"key-{key}", f"fact {key} of {n}", f"{whose.user}/turn", user_statement=True)
        revision = stage.memory.store.revision(whose)
        for fact in stage.memory.store.current(whose):
            origin = [Target(kind="fact", id=fact.id, version=fact.version)]
            stage.cache.answers.put(whose, fact.key, fact.value, origin, revision=revision)


def product(stage: Stage) -> float:
    """File a request for each subject and work all of them off, in one process without a broker."""
    began = time.perf_counter()
    asked = [
        Request(
            scope=subject(n),
            selector=Selector(kind=SelectorKind.SUBJECT),
            reason=Reason.OPERATOR,
            requested_by="bench",
        )
        for n in range(stage.count)
    ]
    for start in range(0, stage.count, FILED_TOGETHER):
        accept_all(asked[start : start + FILED_TOGETHER], stage.control.acceptance)
    while due := stage.control.ledger.due(list(stage.engine.adapters)):
        drain(stage.engine, *due[0])
    took = time.perf_counter() - began
    with stage.control.database.begin() as connection:
        states = set(connection.exec_driver_sql("SELECT state FROM deletion_jobs").scalars())
    if states != {"completed"}:
        sys.exit(f"the product did not finish: {states}")
    return took


def floor(stage: Stage) -> float:
    """Delete each subject's facts in a transaction, and its answers in a call."""
    delete_facts, delete_answers = by_hand(stage)
    began = time.perf_counter()
    for n in range(stage.count):
        delete_facts(n)
        delete_answers(n)
    return time.perf_counter() - began


def one_task_per_unit(stage: Stage) -> float:
    """Do the floor's deletes in Celery tasks, one for each unit that the product has; the looks do nothing."""
    delete_facts, delete_answers = by_hand(stage)
    # Through the cache's Redis: Kombu's broker in memory is one for the whole process, and loses messages between runs.
    broker = stage.control.settings.adapters["cache"]["url"]
    app = Celery("bench", broker=broker)  # type: ignore[no-untyped-call] # Celery's edge
    mine = {"task_default_queue": f"bench-{uuid4()}"}
    app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=8, **mine)
    done, failed = list[int](), list[Exception]()

    @app.task(name="unit")  # type: ignore[no-untyped-call, untyped-decorator] # Celery's edge
    def unit(n: int, step: int) -> None:
        try:
            match UNITS[step]:
                case "erase-memory":
                    delete_facts(n)
                case "erase-cache":
                    delete_answers(n)
                case _:
                    pass
        except Exception as error:
            failed.append(error)
            raise
        if step + 1 < len(UNITS):
            unit.delay(n, step + 1)
        else:
            done.append(n)

    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
        began = time.perf_counter()
        for n in range(stage.count):
            unit.delay(n, 0)
        while len(done) < stage.count:
            if failed:
                raise failed[0]
            time.sleep(0.005)
        return time.perf_counter() - began


def by_hand(stage: Stage) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Give the two deletes of the script: what each needs to know is looked up before the clock starts."""
    client: Any = stage.cache.client()
    answers: dict[bytes, list[bytes]] = {}
    for key in client.scan_iter(match="*:a:*", count=1000):
        answers.setdefault(key.split(b":a:")[0], []).append(key)
    keys = list(answers.values())
    url = str(stage.control.settings.adapters["memory"]["url"])
    delete, opened = _delete_by_driver(settings.inside(url, stage.control.settings.state_dir))
    stage.closing.callback(opened.close)

    def delete_answers(n: int) -> None:
        client.unlink(*keys[n])

    return delete, delete_answers


def _delete_by_driver(url: str) -> tuple[Callable[[int], None], Any]:
    """Delete as a script does, by the driver alone and with the settings that the product has."""
    if url.startswith("sqlite"):
        lite = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
        lite.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;")

        def in_file(n: int) -> None:
            lite.execute("BEGIN IMMEDIATE")
            lite.execute("DELETE FROM facts WHERE tenant = 'bench' AND user_id = ?", (f"user-{n}",))
            lite.execute("COMMIT")

        return in_file, lite
    server = psycopg.connect(url.replace("+psycopg", ""))

    def in_server(n: int) -> None:
        server.execute("DELETE FROM facts WHERE tenant = 'bench' AND user_id = %s", (f"user-{n}",))
        server.commit()

    return in_server, server
