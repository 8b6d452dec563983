"""The embedded cache: a fakeredis server in a process of its own. It keeps nothing on disk."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from adapters.cache.adapter import PORT_FILE


def command(state_dir: Path, options: Mapping[str, object]) -> list[str] | None:
    """Give the command of the embedded server, or None where the URL names a real one."""
    if ":0/" not in str(options.get("url", "redis://127.0.0.1:0/0")):
        return None
    return [sys.executable, "-m", "adapters.cache.server", str(state_dir)]


def serve(state_dir: Path) -> None:
    """Serve on a free port of the loopback until SIGTERM, or until the parent process has died."""
    try:
        from fakeredis import TcpFakeServer  # noqa: PLC0415 - an extra
        from fakeredis._clients._tcp_server import TCPFakeRequestHandler  # noqa: PLC0415
    except ImportError:
        sys.exit("the embedded cache needs fakeredis: pip install 'expunge[embedded]', or set adapters.cache.url")
    over, parent = threading.Event(), os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    # Nagle's algorithm would hold back each answer for 40 ms.
    TCPFakeRequestHandler.disable_nagle_algorithm = True
    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    port = state_dir / PORT_FILE
    fresh = port.with_suffix(".new")
    fresh.write_text(str(server.server_address[1]))
    fresh.chmod(0o600)
    fresh.replace(port)
    try:
        while not over.wait(0.5) and os.getppid() == parent:
            pass
    finally:
        port.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
