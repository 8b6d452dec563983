"""A real RabbitMQ on free ports and in a folder of its own; skipped visibly where it is not installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kombu.connection import Connection
from kombu.exceptions import OperationalError

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class RabbitMQ:
    """A broker that a test may stop and start again: its queues are on disk."""

    folder: Path
    port: int = field(default_factory=free_port)
    _names: int = field(default_factory=free_port)
    _between_nodes: int = field(default_factory=free_port)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        here = {
            "HOME": self.folder,
            "ERL_EPMD_PORT": self._names,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "expunge@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_DIST_PORT": self._between_nodes,
            "RABBITMQ_MNESIA_BASE": self.folder / "data",
            "RABBITMQ_LOG_BASE": self.folder / "log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_CONF_ENV_FILE": self.folder / "none",
            "RABBITMQ_CONFIG_FILE": self.folder / "none",
            "RABBITMQ_PID_FILE": self.folder / "pid",
        }
        environment = {**os.environ, **{name: str(value) for name, value in here.items()}}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # Our own daemon of names, so that none is left running when the broker has stopped.
        names = ["epmd", "-port", str(self._names), "-address", "127.0.0.1"]
        for command in (names, [str(SERVER)]):
            self._running.append(subprocess.Popen(command, env=environment, **quiet))  # type: ignore[call-overload]
        self._wait()

    def stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait(PATIENCE)
        self._running.clear()

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                with Connection(self.url, connect_timeout=1) as connection:  # type: ignore[no-untyped-call]
                    connection.connect()
            except (OSError, OperationalError):
                time.sleep(0.1)
            else:
                return
        pytest.fail("RabbitMQ does not answer")


@contextmanager
def rabbitmq(folder: Path) -> Iterator[RabbitMQ]:
    """Run a broker in a folder."""
    if shutil.which("epmd") is None or not SERVER.exists():
        if os.environ.get("EXPUNGE_REQUIRE_SERVICES"):
            pytest.fail("rabbitmq-server is missing, and EXPUNGE_REQUIRE_SERVICES is set")
        pytest.skip("rabbitmq-server is not installed")
    broker = RabbitMQ(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
