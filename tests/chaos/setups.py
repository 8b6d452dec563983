"""Deployments that processes are killed in: databases, broker and cache of each."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from adapters.cache import CacheAdapter
from adapters.demo.processes import Processes
from adapters.memory import MemoryAdapter
from orchestrator import open_adapter
from orchestrator.bootstrap import Control, open_control
from orchestrator.initialise import initialise
from orchestrator.store.migrate import upgrade
from tests.postgres import new_database, server
from tests.rabbitmq import rabbitmq
from tests.servers import fake_redis, redis_server

NAMES = ("sqlite-filesystem", "postgresql-redis", "postgresql-rabbitmq")
LEASE = 1.0
TUNED = (
    f'lease = "{LEASE:g}s"',
    "batch = 5",
    'backoff_base = "100ms"',
    'breaker_pause = "500ms"',
    'dispatch_interval = "100ms"',
)


@dataclass
class Deployment:
    """A state directory with its stores open, and the processes that run on it."""

    processes: Processes
    control: Control
    memory: MemoryAdapter
    cache: CacheAdapter
    services: dict[str, Any] = field(default_factory=dict)  # that a test may stop and start again

    @property
    def state(self) -> Path:
        return self.processes.state


@contextmanager
def deployment(name: str, folder: Path, require: str = "physical") -> Iterator[Deployment]:
    """Start the services of a set-up, and configure a state directory for them.

    `require` is the reach of the memory store. One process of many looks at the bytes of a SQLite file at a time, so
    it takes long where a thousand jobs wait for it.
    """
    with ExitStack() as stack:
        services: dict[str, Any] = {}
        urls = {"database_url": "sqlite:///orchestrator.db", "memory": "sqlite:///memory.db"}
        if shutil.which("redis-server") or name != NAMES[0]:
            services["redis"] = stack.enter_context(redis_server(_made(folder / "redis")))
            redis = services["redis"].url
        else:
            redis = stack.enter_context(fake_redis())
        if name != NAMES[0]:
            running = services["postgresql"] = stack.enter_context(server(_made(folder / "postgresql")))
            urls = {"database_url": new_database(running), "memory": new_database(running)}
        match name.split("-")[1]:
            case "filesystem":
                broker = "filesystem://"
            case "redis":
                # Apart from the cache, so that it can be stopped without losing what the cache holds.
                services["broker"] = stack.enter_context(redis_server(_made(folder / "broker")))
                broker = services["broker"].url
            case _:
                services["rabbitmq"] = stack.enter_context(rabbitmq(_made(folder / "rabbitmq")))
                broker = services["rabbitmq"].url
        processes = stack.enter_context(Processes(folder))
        _configure(processes.state, {**urls, "broker_url": broker, "cache": redis}, require)
        control = open_control(processes.state)
        stack.callback(control.close)
        upgrade(control.database)
        memory, cache = open_adapter(processes.state, "memory"), open_adapter(processes.state, "cache")
        assert isinstance(memory, MemoryAdapter)
        assert isinstance(cache, CacheAdapter)
        for adapter in (memory, cache):
            stack.callback(adapter.close)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        yield Deployment(processes, control, memory, cache, services)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _configure(state: Path, urls: dict[str, str], require: str) -> None:
    initialise(state)
    path = state / "expunge.toml"
    text = path.read_text().replace('"physical"', f'"{require}"')
    for name in ("database_url", "broker_url"):
        text = re.sub(rf"^{name} .*$", f'{name} = "{urls[name]}"', text, flags=re.MULTILINE)
    for adapter in ("memory", "cache"):
        section = rf"(\[adapters\.{adapter}\][^\[]*?\nurl +=) \"[^\"]*\""
        text, count = re.subn(section, rf'\1 "{urls[adapter]}"', text)
        assert count == 1
    text, count = re.subn(r"^lease .*$", "\n".join(TUNED), text, flags=re.MULTILINE)
    assert count == 1
    path.write_text(text)
