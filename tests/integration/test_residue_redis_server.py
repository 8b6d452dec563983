"""What a Redis must be like for its files to be scrubbed: too slow, failing, foreign, empty or gone."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import redis
import structlog

from adapters.cache import CacheAdapter
from orchestrator import (
    AdapterContext,
    Gate,
    InvalidRequest,
    Keyring,
    Residual,
    Scrubbed,
    ScrubReport,
    StoreUnreachable,
)
from tests.fakes import FakeClock
from tests.integration.cache_harness import ANNA, PASSPORT
from tests.integration.residue_harness import MARKER
from tests.integration.residue_redis_harness import SECRET, persistent
from tests.servers import fake_redis, redis_server

UNSEEN = ScrubReport(outcome=Scrubbed.UNSUPPORTED, residuals=frozenset({Residual.APPEND_ONLY_LOG, Residual.SNAPSHOT}))


def test_log_that_cannot_be_rewritten_is_failed(tmp_path: Path) -> None:
    with persistent(tmp_path, save="") as cache:
        (tmp_path / "appendonlydir" / "appendonly.aof.2.base.rdb").mkdir()
        assert cache.adapter.scrub() == ScrubReport(outcome=Scrubbed.FAILED)


def test_snapshot_that_fails_is_failed(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        (tmp_path / "dump.rdb").mkdir()
        report = cache.adapter.scrub()
        cache.raw.config_set("save", "")  # else the server does not end
        assert report == ScrubReport(outcome=Scrubbed.FAILED)


@pytest.mark.parametrize("begun", [False, True])
def test_what_takes_too_long_is_busy(tmp_path: Path, *, begun: bool) -> None:
    with persistent(tmp_path, call_timeout=0.2) as cache:
        cache.tell()
        cache.raw.config_set("rdb-key-save-delay", 500_000)
        if begun:
            cache.raw.bgsave(schedule=False)
        began = time.monotonic()
        assert cache.adapter.scrub() == ScrubReport(outcome=Scrubbed.BUSY)
        assert 0.2 < time.monotonic() - began < 2
        cache.raw.config_set("rdb-key-save-delay", 0)


def test_parts_of_the_log_that_are_not_taken_away_make_it_busy(tmp_path: Path) -> None:
    with persistent(tmp_path, call_timeout=1, aof_disable_auto_gc="yes") as cache:
        assert cache.adapter.scrub() == ScrubReport(outcome=Scrubbed.BUSY)
        cache.raw.config_set("aof-disable-auto-gc", "no")
        assert cache.adapter.scrub().outcome is Scrubbed.CLEAN


def test_files_of_replicas_are_out_of_reach(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with (
        persistent(tmp_path / "one", repl_diskless_sync_delay="0") as cache,
        redis_server(tmp_path / "two") as other,
        redis.Redis.from_url(other.url) as replica,
    ):
        assert cache.server is not None
        replica.replicaof("127.0.0.1", str(cache.server.port))
        while not cache.raw.info("replication")["connected_slaves"]:
            threading.Event().wait(0.02)
        assert cache.adapter.scrub().residuals == {Residual.FILE_SYSTEM, Residual.REPLICA_COPY}


def test_server_whose_files_cannot_be_seen_is_unsupported(tmp_path: Path) -> None:
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path
    )
    with fake_redis() as fake, redis_server(tmp_path) as real:
        for options in ({"url": fake}, {"url": fake, "data_dir": str(tmp_path)}, {"url": real.url}):
            with closing(CacheAdapter(context, **options)) as adapter:
                assert adapter.scrub() == UNSEEN
    with pytest.raises(InvalidRequest, match="data_dir"):
        CacheAdapter(context, data_dir=7)


def test_server_that_keeps_no_files_is_not_made_to(tmp_path: Path) -> None:
    with persistent(tmp_path, appendonly="no", save="") as cache:
        assert cache.answers.put(ANNA, "where is it", SECRET, [PASSPORT], 1)
        assert cache.adapter.scrub() == ScrubReport(outcome=Scrubbed.UNSUPPORTED)
        with cache.adapter.live_files() as files:
            assert files == []
        assert list(tmp_path.iterdir()) == []


def test_server_that_is_down_is_told(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        assert cache.server is not None
        cache.server.stop()
        calls = (cache.adapter.scrub, lambda: cache.adapter.plant(MARKER), lambda: list(cache.adapter.live_values()))
        for call in calls:
            with pytest.raises(StoreUnreachable):
                call()
        with pytest.raises(StoreUnreachable), cache.adapter.live_files():
            pass
