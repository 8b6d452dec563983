"""The files of the server: written anew without what was deleted, and named to be looked at.

Principles: nothing is said to be done before the server says so; a snapshot is taken only where
the server keeps one anyway; what the server's writers change meanwhile is not kept still, so
a look at it then proves nothing. A file that this cache did not make is named, never removed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import redis

from adapters.cache.connection import translated
from adapters.cache.keys import Keys
from adapters.cache.options import NAME
from orchestrator import AdapterContext, Residual, Scrubbed, ScrubReport

POLL: Final = 0.02
# A marker outlives the longest scan, and dies by itself where its scan has died.
MARKER_LASTS: Final = 3600
_RUNNING: Final = ("loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
_PART: Final = re.compile(r'^file "?(.+?)"? seq \d+ type ([bih])$', re.MULTILINE)
_UNSEEN: Final = frozenset({Residual.APPEND_ONLY_LOG, Residual.SNAPSHOT})


@dataclass(kw_only=True)
class ServerFiles:
    """The files in `folder`, the server's `dir` as this host sees it; without one nothing can be said of them.

    A scrub takes no longer than `call_timeout`, and each call of `client` has a time-out of its own.
    """

    client: Callable[[], redis.Redis]
    keys: Keys
    folder: Path | None
    context: AdapterContext
    file_group: str = NAME

    def scrub(self) -> ScrubReport:
        """Have the snapshot and the command log written anew, and wait for both; forget the slow commands."""
        if self.folder is None:
            return ScrubReport(outcome=Scrubbed.UNSUPPORTED, residuals=_UNSEEN)
        until = time.monotonic() + self.context.call_timeout.total_seconds()
        with translated():
            client = self.client()
            try:
                shard = client.info("cluster").get("cluster_enabled")
                files = _Files.of(client, self.folder)
            except redis.ResponseError:
                # A server that does not tell, or not us: a fake, or one that somebody else runs.
                shard = True
            if shard:
                # What was moved between shards may lie in the files of any.
                return ScrubReport(outcome=Scrubbed.UNSUPPORTED, residuals=_UNSEEN)
            if not files.snapshot and not files.log:
                return ScrubReport(outcome=Scrubbed.UNSUPPORTED)
            outcome = self._rewrite(client, files, until)
            client.slowlog_reset()
            if strays := files.strays():
                self.context.log.warning("store.strays_seen", files=[path.name for path in strays])
            return ScrubReport(outcome=outcome, residuals=files.residuals if outcome is Scrubbed.CLEAN else frozenset())

    @contextmanager
    def live_files(self) -> Iterator[Sequence[Path]]:
        """Give the snapshot, the command log and what a child of the server has left; they go on changing."""
        with translated():
            files = None if self.folder is None else _Files.of(self.client(), self.folder)
        yield [] if files is None else files.there()

    def live_values(self) -> Iterable[bytes]:
        """Give the answers that this cache holds; values of others on the same server are not told apart."""
        with translated():
            client = self.client()
            for key in client.scan_iter(match=self.keys.pattern(), count=1000, _type="hash"):
                yield from (value for value in client.hvals(key) if isinstance(value, bytes))

    def plant(self, marker: bytes) -> None:
        """Keep a marker under a key of this cache's own, in the place of any earlier one."""
        with translated():
            self.client().set(self._marker, marker, ex=MARKER_LASTS)

    def uproot(self, marker: bytes) -> None:
        """Take a marker away, unless a later scan has put its own there."""
        with translated():
            client = self.client()
            if client.get(self._marker) == marker:
                client.unlink(self._marker)

    @property
    def _marker(self) -> str:
        return f"{self.keys.prefix}:marker"

    def _rewrite(self, client: redis.Redis, files: _Files, until: float) -> Scrubbed:
        if _idle(client, until) is None:
            return Scrubbed.BUSY
        if files.snapshot:
            outcome = _run(client, partial(client.bgsave, schedule=False), "rdb_last_bgsave_status", until)
            if outcome is not Scrubbed.CLEAN:
                return outcome
        before = files.log_parts()
        if files.log:
            outcome = _run(client, client.bgrewriteaof, "aof_last_bgrewrite_status", until)
            if outcome is not Scrubbed.CLEAN:
                return outcome
        # The parts of before are unlinked by a thread of the server, after it has said that it is done.
        going = before.keys() - {path for path, replaced in files.log_parts().items() if not replaced}
        while any(path.exists() for path in going):
            if not _wait(until):
                return Scrubbed.BUSY
        return Scrubbed.CLEAN


@dataclass(frozen=True, kw_only=True)
class _Files:
    """What the server keeps in its folder: whether it has, or will have, a snapshot and a command log; and where."""

    folder: Path
    dump: Path
    single_log: Path
    parted_log: Path
    snapshot: bool
    log: bool
    residuals: frozenset[Residual]

    @classmethod
    def of(cls, client: redis.Redis, folder: Path) -> _Files:
        """Ask the server; raises `ResponseError` where it does not answer such questions."""
        told: dict[str, str] = {}
        for name in ("dbfilename", "save", "appendfilename", "appenddirname", "rdbcompression", "aof-use-rdb-preamble"):
            told |= {str(key): str(value) for key, value in client.config_get(name).items()}
        enabled = bool(client.info("persistence")["aof_enabled"])
        dump, single = folder / told["dbfilename"], folder / told["appendfilename"]
        # Up to Redis 6 the log is one file.
        parted = folder / told.get("appenddirname", told["appendfilename"])
        snapshot, log = bool(told["save"]) or dump.exists(), enabled or parted.exists() or single.exists()
        packed = told["rdbcompression"] == "yes" and (snapshot or told["aof-use-rdb-preamble"] == "yes")
        copied = client.info("replication").get("connected_slaves", 0) > 0
        codes = {Residual.FILE_SYSTEM: True, Residual.NOT_SCANNABLE: packed, Residual.REPLICA_COPY: copied}
        return cls(
            folder=folder,
            dump=dump,
            single_log=single,
            parted_log=parted,
            snapshot=snapshot,
            log=log,
            residuals=frozenset(code for code, holds in codes.items() if holds),
        )

    def there(self) -> list[Path]:
        """Give what exists of it, each path once."""
        paths = dict.fromkeys([self.dump, self.single_log, self.parted_log, *self.strays()])
        return [path for path in paths if path.exists()]

    def strays(self) -> list[Path]:
        """Give what a child of the server was writing when it died."""
        return sorted(self.folder.glob("temp-*"))

    def log_parts(self) -> Mapping[Path, bool]:
        """Give the parts that the manifest of the log names, and of each whether it was replaced and is to go."""
        try:
            manifest = (self.parted_log / f"{self.single_log.name}.manifest").read_text(errors="surrogateescape")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {self.parted_log / name: kind == "h" for name, kind in _PART.findall(manifest)}


def _run(client: redis.Redis, begin: Callable[[], object], status: str, until: float) -> Scrubbed:
    """Have the server do something in the background, begun after whatever it is doing now, and wait for its end."""
    while True:
        if _idle(client, until) is None:
            return Scrubbed.BUSY
        try:
            begin()
        except redis.ResponseError:
            if not _running(client.info("persistence")):
                raise
            continue  # it has begun something by itself in between
        done = _idle(client, until)
        if done is None:
            return Scrubbed.BUSY
        return Scrubbed.CLEAN if done[status] == "ok" else Scrubbed.FAILED


def _idle(client: redis.Redis, until: float) -> Mapping[str, Any] | None:
    """Wait until nothing runs in the background, and give what the server then says; None where that takes too long."""
    while _running(said := client.info("persistence")):
        if not _wait(until):
            return None
    return said


def _running(said: Mapping[str, Any]) -> bool:
    return any(said.get(name) for name in _RUNNING)


def _wait(until: float) -> bool:
    """Wait a moment; False where there is no time left."""
    left = until - time.monotonic()
    time.sleep(max(0, min(POLL, left)))
    return left > 0
