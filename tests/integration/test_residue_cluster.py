"""A cluster of three Redis: a walk over the keys of one node is no walk over the cache, and is never taken for one."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

from orchestrator import ErrorCode, Gate, Keyring, Residual, Scope, Scrubbed, ScrubReport, SelectorKind, Transient
from tests.fakes import FakeClock
from tests.integration.cache_harness import ANNA, PASSPORT, Cache, build
from tests.servers import fake_redis, redis_binary

RANGES = ((0, 5460), (5461, 10922), (10923, 16383))


@contextmanager
def node(folder: Path) -> Iterator[redis.Redis]:
    binary = redis_binary()
    folder.mkdir(parents=True)
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, bus = one.getsockname()[1], other.getsockname()[1]
    settings = {"port": port, "cluster-port": bus, "bind": "127.0.0.1", "dir": folder, "save": ""}
    command = [binary, "--cluster-enabled", "yes", *(str(x) for k, v in settings.items() for x in (f"--{k}", v))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            wait(lambda: answers(client))
            yield client
    finally:
        process.terminate()
        process.wait(10)


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def wait(for_it: Callable[[], bool]) -> None:
    for _ in range(500):
        if for_it():
            return
        threading.Event().wait(0.02)
    pytest.fail("the cluster does not come up")


@contextmanager
def cluster(folder: Path) -> Iterator[list[redis.Redis]]:
    with ExitStack() as stack:
        nodes = [stack.enter_context(node(folder / str(n))) for n in range(3)]
        for client, (first, last) in zip(nodes, RANGES, strict=True):
            client.cluster("ADDSLOTSRANGE", first, last)
            told = client.config_get("port")["port"], client.config_get("cluster-port")["cluster-port"]
            for other in nodes:
                other.cluster("MEET", "127.0.0.1", *told)
        wait(lambda: all(client.cluster("INFO")["cluster_state"] == "ok" for client in nodes))
        yield nodes


@pytest.mark.case(106)
def test_subject_of_another_shard_is_refused_and_never_taken_for_empty(tmp_path: Path) -> None:
    gate = Gate(Keyring.create())
    with cluster(tmp_path / "nodes") as nodes:
        url = f"redis://127.0.0.1:{nodes[0].connection_pool.connection_kwargs['port']}/0"
        with closing(build(url, tmp_path, gate, FakeClock(), data_dir=str(tmp_path / "nodes" / "0"))) as adapter:
            cache = Cache(adapter, nodes[0], gate, FakeClock())
            subjects = [replace(ANNA, user=f"user:{n}") for n in range(12)]
            here = [s for s in subjects if key_slot(cache.key(s, "q").encode()) <= RANGES[0][1]]
            assert 0 < len(here) < len(subjects)
            for scope in subjects:
                check(cache, scope, here=scope in here)
            nodes[0].config_set("appendonly", "yes")
            assert adapter.scrub() == ScrubReport(
                outcome=Scrubbed.UNSUPPORTED, residuals=frozenset({Residual.APPEND_ONLY_LOG, Residual.SNAPSHOT})
            )


def check(cache: Cache, scope: Scope, *, here: bool) -> None:
    order = cache.order(scope, SelectorKind.SUBJECT)
    if here:
        for question in ("q", "another"):  # all keys of a subject lie in one slot
            cache.fill(scope, question, PASSPORT)
        assert len(cache.found(order)) == cache.remaining(order) == 2
        assert cache.forget(order).erased == 2
        assert cache.remaining(order) == 0
        return
    for call in (cache.adapter.find, cache.adapter.erase):
        with pytest.raises(Transient) as refused:
            call([replace(order, revision=3)])
        assert refused.value.code is ErrorCode.STORE_REFUSED


@pytest.mark.case(106)
def test_walk_goes_on_over_pages_that_hold_nothing_of_ours(tmp_path: Path) -> None:
    gate = Gate(Keyring.create())
    with fake_redis() as url, redis.Redis.from_url(url) as client:
        with client.pipeline() as pipeline:
            for n in range(3000):
                pipeline.set(f"another:{n}", n)
            pipeline.execute()
        with closing(build(url, tmp_path, gate, FakeClock())) as adapter:
            cache = Cache(adapter, client, gate, FakeClock())
            cache.fill(ANNA, "q", PASSPORT)
            pages, cursor = [], 0
            while True:
                cursor, page = client.scan(cursor, match="cache:*", count=1000)
                pages.append(page)
                if cursor == 0:
                    break
            assert [] in pages
            assert cache.remaining(cache.order(kind=SelectorKind.SUBJECT)) == 1
