"""A cache on a real Redis that writes its files, and a look at what they hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import redis
import structlog

from adapters.cache import CacheAdapter
from orchestrator import AdapterContext, Gate, Keyring
from orchestrator.scan.report import Report
from tests.fakes import FakeClock
from tests.integration.cache_harness import ANNA, NEIGHBOUR, PASSPORT, Cache
from tests.integration.residue_harness import scanned
from tests.servers import RedisServer, redis_server

SECRET = "the passport of Ada Lovelace has the number P1234567 and lies in the safe"
STAYS = "Berta takes the aisle seat in row 12 and has no passport at all with her"


@dataclass
class Persistent(Cache):
    """A cache on a server that writes files."""

    server: RedisServer | None = None
    folder: Path = Path()

    def settle(self) -> None:
        """Wait until the server does nothing in the background."""
        running = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        while any(self.raw.info("persistence")[name] for name in running):
            threading.Event().wait(0.01)

    def save(self) -> None:
        self.raw.bgsave(schedule=False)
        self.settle()

    def tell(self) -> None:
        """Keep two answers, have both files hold them, and plant the marker."""
        assert self.answers.put(ANNA, "where is it", SECRET, [PASSPORT], 1)
        assert self.answers.put(NEIGHBOUR, "which seat", STAYS, [PASSPORT], 1)
        self.save()

    def unlink(self) -> None:
        assert self.forget(self.order(known=(PASSPORT,))).erased == 1

    def look(self) -> Report:
        with self.adapter.live_files() as files:
            return scanned(files, {0: SECRET, 1: STAYS})

    def holding(self, report: Report) -> set[str]:
        """Name the files in which bytes of the answer that went are seen."""
        assert report.control_found
        return {file.path.name for file in report.files if "0" in file.hits}


@contextmanager
def persistent(folder: Path, *, call_timeout: float = 10, **config: str) -> Iterator[Persistent]:
    """Run a server with a command log and snapshots, uncompressed unless asked for."""
    chosen = {"appendonly": "yes", "save": "3600 1000000", "rdbcompression": "no", **config}
    with redis_server(folder) as server, redis.Redis.from_url(server.url) as raw:
        for name, setting in chosen.items():
            raw.config_set(name.replace("_", "-"), setting)
        gate, clock = Gate(Keyring.create()), FakeClock()
        context = AdapterContext(
            clock=clock,
            gate=gate,
            log=structlog.get_logger(),
            state_dir=folder,
            call_timeout=timedelta(seconds=call_timeout),
        )
        with closing(CacheAdapter(context, url=server.url, timeout=5, data_dir=str(folder))) as adapter:
            cache = Persistent(adapter, raw, gate, clock, server=server, folder=folder)
            cache.settle()
            yield cache
