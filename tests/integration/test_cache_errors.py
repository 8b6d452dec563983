"""What the cache refuses, and what it says when its server does not answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from adapters.cache import CacheAdapter
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    ErrorCode,
    Gate,
    InvalidRequest,
    Keyring,
    StoreUnreachable,
    Target,
    Transient,
)
from tests.fakes import FakeClock
from tests.integration.cache_harness import ANNA, PASSPORT, Cache, build
from tests.servers import fake_redis


def test_late_order_is_not_begun(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), targets=(Target(kind="cache_key", id=cache.key(ANNA, "q")),), revision=9)
    cache.clock.at += timedelta(seconds=61)
    for call in (cache.adapter.find, cache.adapter.erase, cache.adapter.verify):
        with pytest.raises(DeadlinePassed):
            call([order])
    assert cache.answers.get(ANNA, "q") is not None
    assert cache.answers.put(ANNA, "q", "x", [PASSPORT], 1)


@pytest.mark.case(32)
def test_server_that_is_down_is_said_and_nothing_is_counted(tmp_path: Path) -> None:
    gate, clock = Gate(Keyring.create()), FakeClock()
    with fake_redis() as url:
        adapter = build(url, tmp_path, gate, clock, timeout=1)
        adapter.answers.put(ANNA, "q", "P1234567", [PASSPORT], 1)
        answers = adapter.answers
        stage = Cache(adapter=adapter, raw=adapter.client(), gate=gate, clock=clock)
        order = stage.order(known=(PASSPORT,), targets=(Target(kind="cache_key", id=stage.key(ANNA, "q")),), revision=2)
        adapter.close()
    with capture_logs() as logs:
        for call in (adapter.find, adapter.erase, adapter.verify):
            with pytest.raises(StoreUnreachable) as raised:
                call([order])
            assert raised.value.code is ErrorCode.STORE_UNREACHABLE
            assert "cache:" not in str(raised.value)
        with pytest.raises(StoreUnreachable):
            answers.put(ANNA, "q", "x", [PASSPORT], 1)
        with pytest.raises(StoreUnreachable):
            answers.get(ANNA, "q")
    assert logs == []
    adapter.close()


def test_command_that_the_server_refuses_is_transient_and_quotes_no_key(cache: Cache) -> None:
    base = cache.key(ANNA, "").split(":a:")[0]
    cache.raw.set(f"{base}:keys", "not a set")
    with pytest.raises(Transient) as raised:
        cache.adapter.find([cache.order()])
    assert raised.value.code is ErrorCode.STORE_REFUSED
    assert base not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("option", "value"),
    [("url", "http://localhost"), ("url", "redis://h:x/0"), ("prefix", "Cache"), ("prefix", "a:b"), ("prefix", "x\n"),
     ("prefix", ""), ("prefix", "a" * 33), ("timeout", 0), ("speed", 1)],
)  # fmt: skip
def test_wrong_option_is_named_with_what_is_allowed(tmp_path: Path, option: str, value: object) -> None:
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path
    )
    with pytest.raises(InvalidRequest, match=rf"cache: option {option} .*allowed: url, prefix, timeout"):
        CacheAdapter(context, **{option: value})
