"""The connection to the server: made at first use, and every error of the client made one of ours.

A message never quotes the client's: it may hold a key.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from orchestrator import ErrorCode, StoreUnreachable, Transient

PORT_FILE: Final = "cache.port"
UNREACHABLE: Final = (
    redis.ConnectionError,  # a server that is still loading its data included
    redis.TimeoutError,
    redis.ReadOnlyError,
    redis.exceptions.ClusterDownError,
    OSError,
)


class Connection:
    """One client for a URL; port 0 stands for the port that the embedded server has written down."""

    def __init__(self, url: str, *, timeout: float, state_dir: Path) -> None:
        self._url = url
        self._timeout = timeout
        self._port_file = state_dir / PORT_FILE
        self._lock = threading.Lock()
        self._client: redis.Redis | None = None
        self._made_for = ""

    def client(self) -> redis.Redis:
        """Give the client; raises `StoreUnreachable` while the embedded server is not running."""
        address = self._address()
        with self._lock:
            if self._client is not None and self._made_for != address:
                # An embedded server that was started again listens on another port.
                self._client.close()
                self._client = None
            if self._client is None:
                self._made_for = address
                self._client = redis.Redis.from_url(
                    address,
                    socket_timeout=self._timeout,
                    socket_connect_timeout=self._timeout,
                    retry=Retry(NoBackoff(), 1),
                    protocol=2,
                )
            return self._client

    def close(self) -> None:
        """Give back the connections; the next use makes new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _address(self) -> str:
        parts = urlsplit(self._url)
        if parts.port != 0:
            return self._url
        try:
            port = int(self._port_file.read_text())
        except (OSError, ValueError):
            message = "The embedded cache is not running: start it with `expunge up`."
            raise StoreUnreachable(message) from None
        return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))


@contextmanager
def translated() -> Iterator[None]:
    """Turn every error of the client into `StoreUnreachable` or into `Transient` with `store_refused`."""
    try:
        yield
    except UNREACHABLE:
        raise StoreUnreachable from None
    except (redis.RedisError, RedisClusterException):
        message = "The cache refused a command."
        raise Transient(message, code=ErrorCode.STORE_REFUSED) from None
