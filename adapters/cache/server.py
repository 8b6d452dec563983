"""The embedded server: Redis in one process of this machine, for trying out and for the demo.

It keeps everything in memory: what was cached and every fence is gone when it ends. Use a
Redis of your own where the cache has to outlive that.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from adapters.cache.connection import PORT_FILE
from adapters.cache.options import DEFAULT_URL, wants_embedded

LOCK_FILE: Final = "cache.lock"
_LOOK_AT_PARENT: Final = 0.5
_PATIENCE: Final = 3.0


def command(state_dir: Path, options: Mapping[str, object]) -> list[str] | None:
    """Give the command that starts the server, or None where the options name one that runs elsewhere."""
    if not wants_embedded(str(options.get("url", DEFAULT_URL))):
        return None
    # Who asks for the command starts it. It may be gone before the server can ask who its parent is.
    return [sys.executable, "-m", "adapters.cache.server", str(state_dir), str(os.getpid())]


def main(state_dir: Path, parent: int) -> int:
    """Serve until SIGTERM, Ctrl-C or the end of the process that has started it; give the exit status."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    try:
        import fakeredis  # noqa: F401, PLC0415 - an optional dependency
    except ImportError:
        sys.stderr.write("the embedded cache needs fakeredis: install expunge[embedded]\n")
        return 1
    with (state_dir / LOCK_FILE).open("a") as lock:
        if not _locked(lock, over, parent):
            sys.stderr.write("another embedded cache serves this state directory: stop it first\n")
            return 1
        return _serve(state_dir / PORT_FILE, over, parent)


def _locked(lock: IO[str], over: threading.Event, parent: int) -> bool:
    """Take the lock that makes this the one server of its folder; a server whose parent died needs a moment to go."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until or over.wait(0.1) or os.getppid() != parent:
                return False
        else:
            return True


def _serve(port_file: Path, over: threading.Event, parent: int) -> int:
    from fakeredis import TcpFakeServer  # noqa: PLC0415 - an optional dependency
    from fakeredis._clients._tcp_server import TCPFakeRequestHandler  # noqa: PLC0415 - has no public name

    # Nagle's algorithm and delayed acknowledgements together cost 40 ms an answer.
    TCPFakeRequestHandler.disable_nagle_algorithm = True
    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, name="embedded-cache")
    thread.start()
    port = str(server.server_address[1])
    try:
        _write(port_file, port)
        while os.getppid() == parent and not over.wait(_LOOK_AT_PARENT):
            pass
    finally:
        _remove(port_file, port)
        server.shutdown()
        server.server_close()
        thread.join()
    return 0


def _write(path: Path, port: str) -> None:
    """Write the port so that a reader sees all of it or none."""
    half = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(port)
    half.replace(path)


def _remove(path: Path, port: str) -> None:
    """Remove the port file, unless a server that was started after this one has written its own."""
    if path.exists() and path.read_text() == port:
        path.unlink()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
