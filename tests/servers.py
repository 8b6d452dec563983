"""Servers that tests start and stop: each on a free port of the loopback, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from fakeredis import TcpFakeServer
from fakeredis._clients._tcp_server import TCPFakeRequestHandler

PATIENCE = 10.0
POLL = 0.01
"""Seconds between two looks of the fake server whether it is to end: what every test that uses one waits for."""


@contextmanager
def fake_redis() -> Iterator[str]:
    """Serve fakeredis over TCP; without Nagle's algorithm, which costs 40 ms an answer."""
    TCPFakeRequestHandler.disable_nagle_algorithm = True
    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, args=(POLL,), daemon=True)
    thread.start()
    try:
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class RedisServer:
    """A redis-server process without persistence; a test may stop and start it again."""

    binary: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([*command, "--dir", str(self.folder)], stdout=quiet, stderr=quiet)
        _wait_for(self.url)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE)


def redis_binary() -> str:
    """Give the program of a redis-server; skipped visibly where there is none, failed where services are required."""
    binary = shutil.which("redis-server")
    if binary is None:
        if os.environ.get("EXPUNGE_REQUIRE_SERVICES"):
            pytest.fail("redis-server is missing, and EXPUNGE_REQUIRE_SERVICES is set")
        pytest.skip("redis-server is not installed")
    return binary


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Run a redis-server on a free port."""
    binary = redis_binary()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = RedisServer(binary, folder, port)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@contextmanager
def real_redis(folder: Path) -> Iterator[str]:
    """Serve a redis-server process; give its URL."""
    with redis_server(folder) as running:
        yield running.url


def _wait_for(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        for _ in range(int(PATIENCE / 0.02)):
            try:
                client.ping()
            except redis.ConnectionError:
                threading.Event().wait(0.02)
            else:
                return
    pytest.fail("redis-server does not answer")


@pytest.fixture(params=["fakeredis", "redis"])
def redis_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of an empty Redis: the fake and the real one in turn."""
    if request.param == "fakeredis":
        with fake_redis() as url:
            yield url
    else:
        with real_redis(tmp_path) as url:
            yield url


@pytest.fixture(params=["filesystem", "fakeredis", "redis"])
def broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of each broker in turn."""
    match request.param:
        case "filesystem":
            yield "filesystem://"
        case "fakeredis":
            with fake_redis() as url:
                yield url
        case _:
            with real_redis(tmp_path) as url:
                yield url
