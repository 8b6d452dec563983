"""The stores of a measurement: filled once for each number of data subjects, and copied for each run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import SQLAlchemyError

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from orchestrator import InvalidRequest, Scope, Target
from orchestrator.bootstrap import Control, open_control, open_engine
from orchestrator.initialise import initialise
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade

FACTS = 3
CONTROL, MEMORY = "expunge_bench_control", "expunge_bench_memory"


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
def stores(filled: Filled, require: str) -> Iterator[Stage]:
    """Copy filled stores for one run; `require` is the reach of the memory store."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "state"
        shutil.copytree(filled.folder, folder)
        path = folder / "expunge.toml"
        path.write_text(path.read_text().replace('"physical"', f'"{require}"'))
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
