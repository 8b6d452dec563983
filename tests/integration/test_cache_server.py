"""The embedded server: a process that says where it listens, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
import structlog

from adapters.cache import CacheAdapter
from adapters.cache.server import command
from orchestrator import AdapterContext, Gate, InvalidRequest, Keyring, Scope, StoreUnreachable
from tests.fakes import FakeClock
from tests.integration.cache_harness import PASSPORT

ANNA = Scope(tenant="tenant-a", user="anna", project="trips")


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = command(folder, {})
    assert argv is not None
    process = subprocess.Popen(argv)
    try:
        until((folder / "cache.port").exists)
        yield process
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[CacheAdapter]:
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path
    )
    made = CacheAdapter(context)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("options", "embedded"),
    [
        ({}, True),
        ({"url": "redis://127.0.0.1:0/0", "required": True}, True),
        ({"url": "redis://user:secret@cache.example.org:0/3"}, True),
        ({"url": "redis://127.0.0.1:6379/0"}, False),
        ({"url": "redis://cache.example.org"}, False),
    ],
)
def test_only_port_0_asks_for_the_embedded_server(tmp_path: Path, options: dict[str, object], embedded: bool) -> None:  # noqa: FBT001
    wanted = [sys.executable, "-m", "adapters.cache.server", str(tmp_path), str(os.getpid())]
    assert command(tmp_path, options) == (wanted if embedded else None)


def test_wrong_url_is_an_invalid_request(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="option url"):
        command(tmp_path, {"url": "redis://127.0.0.1:port/0"})


def test_server_says_where_it_is_and_takes_that_back_at_the_end(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        file = tmp_path / "cache.port"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with redis.Redis(port=int(file.read_text())) as client:
            assert client.ping()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cache.lock"]


def test_second_server_of_a_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    argv = command(tmp_path, {})
    assert argv is not None
    with running(tmp_path):
        port = (tmp_path / "cache.port").read_text()
        second = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
        assert (second.returncode, "another embedded cache" in second.stderr) == (1, True)
        assert (tmp_path / "cache.port").read_text() == port
        with redis.Redis(port=int(port)) as client:
            assert client.ping()


def test_port_of_another_server_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path):
        (tmp_path / "cache.port").write_text("1")
    assert (tmp_path / "cache.port").read_text() == "1"


def test_server_ends_when_its_parent_has_died(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time; from pathlib import Path; from adapters.cache.server import command\n"
        "subprocess.Popen(command(Path(sys.argv[1]), {})); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.DEVNULL)
    until((tmp_path / "cache.port").exists)
    parent.kill()
    parent.wait()
    # The next one waits until this one has gone.
    with running(tmp_path) as successor:
        until(lambda: (tmp_path / "cache.port").exists() and successor.poll() is None)
    until(lambda: not (tmp_path / "cache.port").exists())


def test_missing_server_is_said_at_first_use_and_found_when_it_comes_and_comes_again(
    tmp_path: Path, adapter: CacheAdapter
) -> None:
    with pytest.raises(StoreUnreachable, match="not running"):
        adapter.find([])
    with pytest.raises(StoreUnreachable, match="not running"):
        _ = adapter.answers
    with running(tmp_path):
        assert adapter.answers.put(ANNA, "q", "x", [PASSPORT], 1)
        assert adapter.answers.get(ANNA, "q") == "x"
        before = adapter.answers
    for answers in (before, None):
        with pytest.raises(StoreUnreachable):
            (answers or adapter.answers).get(ANNA, "q")
    with running(tmp_path):  # on another port, and empty
        assert list(adapter.find([])) == []
        assert adapter.answers.get(ANNA, "q") is None


def test_server_whose_starter_is_gone_before_it_looks_ends_at_once(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    starting = [*(command(tmp_path, {}) or [])[:-1], gone.stdout.decode().strip()]
    assert subprocess.run(starting, timeout=20, check=False).returncode == 0
    assert not (tmp_path / "cache.port").exists()


def test_missing_fakeredis_is_said_with_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['fakeredis'] = None\n"
        "from pathlib import Path; from adapters.cache.server import main\n"
        "import os; sys.exit(main(Path(sys.argv[1]), os.getppid()))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "install expunge[embedded]" in done.stderr
    assert list(tmp_path.iterdir()) == []
