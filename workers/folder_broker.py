"""The broker over folders, made safe for readers and writers that meet.

Kombu's own writes a message, and the list of queues, in place: a reader that comes between the
opening and the writing sees half of it, and its worker ends. Here a file appears whole, by a
rename, and what cannot be read is dropped: a message is a hint, and SQL announces it again.
"""

from __future__ import annotations

import base64
import fcntl
import json
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any, Final

import structlog
from kombu.transport import filesystem

TRANSPORT: Final = "workers.folder_broker:Transport"
LONGEST_WAIT: Final = 0.2


class Channel(filesystem.Channel):
    """Files of one folder as queues."""

    def _put(self, queue: str, payload: Any, **_options: object) -> None:  # type: ignore[override]  # noqa: ANN401 - Kombu's
        """Write a message beside its folder, and move it in as a whole."""
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        _write(Path(self.data_folder_out) / name, payload)

    def _get(self, queue: str, timeout: object = None) -> Any:  # noqa: ANN401, ARG002 - Kombu's own signature
        """Take the oldest message of a queue; one that cannot be read is removed and passed over."""
        for path in sorted(Path(self.data_folder_in).iterdir()):
            if path.name.partition(".")[2] != f"{queue}.msg":
                continue
            # Whoever moves it has it alone.
            mine = _beside(path)
            try:
                path.rename(mine)
                content = mine.read_bytes()
                mine.unlink()
            except OSError:
                continue
            message = _readable(content)
            if message is not None:
                return message
            structlog.get_logger().warning("message.dropped", queue=queue, bytes=len(content))
        raise Empty

    def get_table(self, exchange: str) -> list[Any]:
        """Read which queues an exchange feeds; none where the list cannot be read."""
        try:
            content = json.loads(self._file(exchange).read_bytes())
            return [filesystem.exchange_queue_t(*entry) for entry in content]
        except (FileNotFoundError, ValueError, TypeError):
            return []

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str | None) -> None:
        """Add a queue to the list of an exchange; several processes may do so at once."""
        file = self._file(exchange)
        file.parent.mkdir(exist_ok=True)
        entry = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with (file.parent / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table = self.get_table(exchange)
            if entry not in table:
                _write(file, [entry, *table])

    def _file(self, exchange: str) -> Path:
        return Path(self._exchange_file(exchange))  # type: ignore[no-untyped-call] # Celery's edge


class Transport(filesystem.Transport):
    """Kombu's transport with our channel."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:  # noqa: ANN401 - Kombu's
        """Wait seconds for a message, but never many: a worker looks only between two waits whether it is to stop."""
        wait = min(timeout or LONGEST_WAIT, LONGEST_WAIT)
        super().drain_events(connection, timeout=wait)  # type: ignore[no-untyped-call] # Celery's edge

    @property
    def default_connection_params(self) -> dict[str, Any]:
        """Name no host: with one, Kombu would warn that it was not given."""
        return {"port": self.default_port, "hostname": ""}


def _write(path: Path, content: Any) -> None:  # noqa: ANN401 - any JSON document
    half = _beside(path)
    half.write_text(json.dumps(content))
    half.replace(path)


def _beside(path: Path) -> Path:
    """Name a file in the parent of a folder: on the same disk, and where nobody looks for messages."""
    return path.parent.parent / f"{uuid.uuid4()}.half"


def _readable(content: bytes) -> dict[str, Any] | None:
    """Give a message if it is whole and names a task, as each that we send does."""
    try:
        message = json.loads(content)
        properties, headers = message["properties"], message["headers"]
        whole = all(isinstance(text, str) for text in (headers["task"], headers["id"], message["body"]))
        if properties["body_encoding"] == "base64":
            json.loads(base64.b64decode(message["body"], validate=True))
        return message if whole and {"delivery_tag", "delivery_info"} <= properties.keys() else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
