"""`make bench`: start what `expunge bench` needs, on free ports and in temporary folders, and run it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.postgres import server
from tests.servers import redis_server


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "redis").mkdir()
        with redis_server(folder / "redis") as cache, server(folder) as postgresql:
            url = postgresql.get_uri().replace("postgresql://", "postgresql+psycopg://")
            command = [sys.executable, "-m", "orchestrator.cli", "bench", "--redis-url", cache.url]
            done = subprocess.run([*command, "--postgresql-url", url, *sys.argv[1:]], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
