"""The broker over folders: whatever lies in it, a real worker goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from structlog.testing import capture_logs

from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service import dispatch
from orchestrator.settings import Settings
from tests.fakes import Bench, bench, fill
from tests.integration.test_workers import until
from workers.celery_app import CeleryBroker, build, queue
from workers.folder_broker import Transport
from workers.tasks import register


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path, lease=1)
    yield made
    made.ledger.engine.dispose()


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    made: Any = build(Settings(state_dir=tmp_path, broker_url="filesystem://"))
    yield made
    made.close()


def messages(state: Path) -> list[Path]:
    return sorted((state / "broker" / "messages").iterdir())


def sent(app: Any, state: Path, task: str, *args: object) -> bytes:  # noqa: ANN401 - Celery's app
    """Send a message and take it out of the folder again."""
    app.send_task(task, args=args, queue=queue("source"))
    (path,) = messages(state)
    content = path.read_bytes()
    path.unlink()
    return content


def test_worker_goes_on_after_messages_that_are_none(stage: Bench, app: Any, tmp_path: Path) -> None:  # noqa: ANN401
    whole = sent(app, tmp_path, "expunge.run", "source", "revoke")
    body = json.loads(whole)
    bad = [
        b"",
        whole[: len(whole) // 2],
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        json.dumps({**body, "body": "***"}).encode(),
        json.dumps({**body, "headers": {}}).encode(),
        json.dumps({**body, "properties": {}}).encode(),
        sent(app, tmp_path, "nobody.knows.this", "source", "revoke"),
        sent(app, tmp_path, "expunge.run"),
        sent(app, tmp_path, "expunge.run", "nowhere", "revoke"),
        sent(app, tmp_path, "expunge.run", "source", "no-such-phase"),
        sent(app, tmp_path, "expunge.run", {"not": "a name"}, 7, "more"),
    ]
    folder = tmp_path / "broker" / "messages"
    for number, content in enumerate(bad):
        (folder / f"{number:03}_x.{queue('source')}.msg").write_bytes(content)
    register(app, lambda: stage.engine)
    fill(stage)
    job = stage.file()
    broker = CeleryBroker(app)
    with (
        capture_logs() as logs,
        start_worker(
            app, pool="threads", concurrency=2, perform_ping_check=False, queues=[queue("source"), queue("copies")]
        ),
    ):
        until(lambda: messages(tmp_path) == [])
        dispatch.announce(stage.ledger, broker, stage.ledger.crash)
        until(lambda: stage.view(job).state is JobState.COMPLETED)
    dropped = [line for line in logs if line["event"] == "message.dropped"]
    assert [line["bytes"] for line in dropped] == [len(content) for content in bad[:9]]
    assert list((tmp_path / "broker").glob("*.half")) == []


def test_message_is_in_the_folder_as_a_whole_or_not_at_all(app: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A reader that looks all the time never sees half a message."""
    sent(app, tmp_path, "expunge.run", "source", "revoke")
    over, whole, torn = threading.Event(), [], []

    def read() -> None:
        while not over.is_set():
            for path in messages(tmp_path):
                content = path.read_bytes()
                try:
                    whole.append(json.loads(content))
                except ValueError:
                    torn.append(len(content))
                path.unlink()

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(300):
        CeleryBroker(app).announce("source", Phase.REVOKE)
    over.set()
    reader.join()
    assert (torn, len(whole) + len(messages(tmp_path))) == ([], 300)
    assert whole, "it has read while they were written"


def test_list_of_queues_that_is_damaged_is_made_again(stage: Bench, app: Any, tmp_path: Path) -> None:  # noqa: ANN401
    file = tmp_path / "broker" / "control" / f"{queue('source')}.exchange"
    file.write_bytes(b"")
    state: Any = Transport.global_state
    state.clear()  # a process that has just begun knows no queue
    register(app, lambda: stage.engine)
    fill(stage)
    job = stage.file()
    with start_worker(
        app, pool="threads", concurrency=2, perform_ping_check=False, queues=[queue("source"), queue("copies")]
    ):
        dispatch.announce(stage.ledger, CeleryBroker(app), stage.ledger.crash)
        until(lambda: stage.view(job).state is JobState.COMPLETED)
    assert json.loads(file.read_bytes())
