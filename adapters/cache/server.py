"""The embedded server: Redis in one process of this machine, for trying out and for the demo.

It keeps everything in memory: what was cached and every fence is gone when it ends. Use a
Redis of your own where the cache has to outlive that.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from adapters.cache.connection import PORT_FILE
from adapters.cache.options import DEFAULT_URL, wants_embedded

_LOOK_AT_PARENT: Final = 0.5


def command(state_dir: Path, options: Mapping[str, object]) -> list[str] | None:
    """Give the command that starts the server, or None where the options name one that runs elsewhere."""
    if not wants_embedded(str(options.get("url", DEFAULT_URL))):
        return None
    return [sys.executable, "-m", "adapters.cache.server", str(state_dir)]


def main(state_dir: Path) -> int:
    """Serve until SIGTERM, Ctrl-C or the end of the parent process; give the exit status."""
    over, parent = threading.Event(), os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    try:
        from fakeredis import TcpFakeServer  # noqa: PLC0415 - an optional dependency
        from fakeredis._clients._tcp_server import TCPFakeRequestHandler  # noqa: PLC0415 - has no public name
    except ImportError:
        sys.stderr.write("the embedded cache needs fakeredis: install expunge[embedded]\n")
        return 1
    # Nagle's algorithm and delayed acknowledgements together cost 40 ms an answer.
    TCPFakeRequestHandler.disable_nagle_algorithm = True
    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, name="embedded-cache")
    thread.start()
    port = str(server.server_address[1])
    try:
        _write(state_dir / PORT_FILE, port)
        while not over.wait(_LOOK_AT_PARENT) and os.getppid() == parent:
            pass
    finally:
        _remove(state_dir / PORT_FILE, port)
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
    sys.exit(main(Path(sys.argv[1])))
