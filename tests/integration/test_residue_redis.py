"""What the files of a real Redis keep of an answer after it was unlinked, and what a scrub leaves of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator import (
    PhysicalStore,
    Residual,
    Scrubbed,
    ScrubReport,
)
from orchestrator.scan.formats import Unscannable
from orchestrator.scan.report import Doubt, Verdict
from tests.integration.cache_harness import ANNA, NEIGHBOUR, PASSPORT, Cache
from tests.integration.residue_harness import MARKER, scanned
from tests.integration.residue_redis_harness import SECRET, STAYS, persistent


@pytest.mark.case(109)
def test_answer_stays_in_snapshot_and_log_until_both_are_written_anew(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        assert isinstance(cache.adapter, PhysicalStore)
        cache.tell()
        cache.unlink()
        cache.adapter.plant(MARKER)
        assert cache.holding(cache.look()) == {"dump.rdb", "appendonly.aof.1.incr.aof"}
        cache.save()
        assert cache.holding(cache.look()) == {"appendonly.aof.1.incr.aof"}
        report = cache.adapter.scrub()
        assert report == ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM}))
        seen = cache.look()
        assert cache.holding(seen) == set()
        assert {f.path.name for f in seen.files if "1" in f.hits} == {"dump.rdb", "appendonly.aof.2.base.rdb"}
        assert cache.answers.get(NEIGHBOUR, "which seat") == STAYS
        # The format alone does not say that nothing in it is compressed.
        assert seen.of("0") is Verdict.NOT_SCANNABLE


@pytest.mark.case(109)
def test_keys_name_nobody(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        cache.tell()
        names = repr(cache.raw.keys())
        assert "cache:{" in names
        assert ANNA.user not in names
        assert "where" not in names


@pytest.mark.case(109)
def test_log_in_plain_commands_is_called_clean(tmp_path: Path) -> None:
    with persistent(tmp_path, aof_use_rdb_preamble="no", save="", rdbcompression="yes") as cache:
        assert cache.answers.put(ANNA, "where is it", SECRET, [PASSPORT], 1)
        cache.unlink()
        cache.adapter.plant(MARKER)
        assert cache.look().of("0") is Verdict.FOUND
        assert cache.adapter.scrub() == ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM}))
        assert cache.look().of("0") is Verdict.CLEAN
        assert not (tmp_path / "dump.rdb").exists(), "no snapshot is taken where the server keeps none"


def test_snapshot_that_is_left_of_an_earlier_setting_is_replaced(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        cache.tell()
        cache.adapter.plant(MARKER)
        cache.raw.config_set("save", "")
        cache.raw.config_set("appendonly", "no")
        cache.unlink()
        assert cache.holding(cache.look()) == {"dump.rdb", "appendonly.aof.1.incr.aof"}
        assert cache.adapter.scrub().outcome is Scrubbed.CLEAN
        assert cache.holding(cache.look()) == set()


@pytest.mark.case(109)
def test_snapshot_that_began_before_is_waited_for_and_another_one_is_taken(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        cache.tell()
        cache.raw.config_set("rdb-key-save-delay", 50_000)
        cache.raw.bgsave(schedule=False)  # this one has the answer
        cache.unlink()
        cache.adapter.plant(MARKER)
        assert cache.adapter.scrub().outcome is Scrubbed.CLEAN
        info = cache.raw.info("persistence")
        assert (info["rdb_bgsave_in_progress"], info["aof_rewrite_in_progress"], info["rdb_saves"]) == (0, 0, 3)
        assert cache.holding(cache.look()) == set()
        manifest = (tmp_path / "appendonlydir" / "appendonly.aof.manifest").read_text()
        parts = {path.name for path in (tmp_path / "appendonlydir").iterdir()} - {"appendonly.aof.manifest"}
        assert parts == {line.split()[1] for line in manifest.splitlines()}


@pytest.mark.case(109)
def test_slow_commands_are_forgotten(tmp_path: Path) -> None:
    with persistent(tmp_path, slowlog_log_slower_than="0") as cache:
        cache.tell()
        cache.raw.config_set("slowlog-log-slower-than", "1000000")
        assert SECRET.encode() in b" ".join(entry["command"] for entry in cache.raw.slowlog_get(128))
        assert cache.adapter.scrub().outcome is Scrubbed.CLEAN
        assert cache.raw.slowlog_len() == 0


@pytest.mark.case(109)
def test_file_that_a_dead_child_left_is_named_and_looked_at_and_stays(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        stray = tmp_path / "temp-4711.rdb"
        stray.write_text(f"REDIS0010 {SECRET}")
        cache.adapter.plant(MARKER)
        with capture_logs() as logs:
            assert cache.adapter.scrub().outcome is Scrubbed.CLEAN
        assert [log["files"] for log in logs if log["event"] == "store.strays_seen"] == [["temp-4711.rdb"]]
        assert cache.holding(cache.look()) == {"temp-4711.rdb"}


def test_file_that_a_writer_changes_meanwhile_proves_nothing(tmp_path: Path) -> None:
    with persistent(tmp_path) as cache:
        cache.adapter.plant(MARKER)
        assert cache.adapter.scrub().outcome is Scrubbed.CLEAN
        over = threading.Event()

        def write() -> None:
            while not over.wait(0.005):
                cache.raw.set("another", "x" * 100)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            report = cache.look()
        finally:
            over.set()
            writer.join()
        assert {f.doubt for f in report.files if f.path.name.endswith(".incr.aof")} == {Doubt.CHANGED}
        assert report.of("0") is Verdict.INCONCLUSIVE


def test_marker_is_a_key_of_this_cache_that_dies_and_is_nobodys_entry(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT)
    before = cache.dump()
    for marker in (b"of a scan that has died.........", MARKER):
        cache.adapter.plant(marker)
    assert cache.raw.get("cache:marker") == MARKER
    assert 0 < int(cache.raw.ttl("cache:marker")) <= 3600
    assert len(cache.found(cache.order(known=(PASSPORT,)))) == 1
    assert cache.remaining(cache.order(known=(PASSPORT,))) == 1
    assert list(cache.adapter.live_values()).count(b"answer to q") == 1
    cache.adapter.uproot(b"of a scan that has died.........")
    assert cache.raw.get("cache:marker") == MARKER
    cache.adapter.uproot(MARKER)
    cache.adapter.uproot(MARKER)
    assert cache.raw.get("cache:marker") is None
    assert cache.dump() == before


@pytest.mark.case(109)
def test_text_in_a_compressed_snapshot_is_not_seen_and_that_is_said(tmp_path: Path) -> None:
    with persistent(tmp_path, rdbcompression="yes") as cache:
        # The second half says the first one's pieces in another order: LZF stores where they were.
        again = "".join(SECRET[place : place + 8] for place in range(56, -1, -8))
        assert cache.answers.put(ANNA, "where is it", SECRET + again, [PASSPORT], 1)
        cache.adapter.plant(MARKER)
        report = cache.adapter.scrub()
        assert report.residuals == {Residual.FILE_SYSTEM, Residual.NOT_SCANNABLE}
        seen = cache.look()
        assert cache.answers.get(ANNA, "where is it") == SECRET + again
        assert seen.control_found, "the marker is too short of repetition to be compressed"
        assert {f.unscannable for f in seen.files if f.path.suffix == ".rdb"} == {Unscannable.REDIS_DUMP}
        with cache.adapter.live_files() as files:
            blind = scanned(files, {0: again})
        assert blind.hits == {}
        assert blind.of("0") is Verdict.NOT_SCANNABLE
