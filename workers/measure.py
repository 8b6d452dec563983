"""Measuring the product beside two scripts that people would write by hand, as ratios in one run.

Product: as a new state directory has it; `reads` is the same without the look at bytes.
Floor: for each subject and store one transaction that makes the same deletes, and nothing
else: no receipts, no gate, no second look. Tasks: the same deletes as one Celery task for
each unit of the product but those of its second pass of find, worked off by one worker in
this process.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
from celery import Celery
from celery.contrib.testing.worker import start_worker

from orchestrator import Reason, Selector, SelectorKind, settings
from orchestrator.service.accept import Request, accept_all
from orchestrator.service.drain import drain
from workers.measured_stores import Stage, filling, stores, subject

FILED_TOGETHER = 500
# Two less than one job of the product comes to with these stores: its second pass of find, which finds nothing new.
UNITS = ("revoke", "find-memory", "find-cache", "erase-memory", "erase-cache", "verify-memory", "verify-cache")


def compare(
    subjects: int, repeats: int, tasks: int, redis_url: str, postgresql_url: str, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run every way on every database, in turn; give medians and their ratios. Each run is told when it ends."""
    places: dict[str, str | None] = {"sqlite": None}
    if postgresql_url:
        places["postgresql"] = postgresql_url
    answer: dict[str, Any] = {"subjects": subjects, "repeats": repeats, "ratio_to_floor": {}, "ratio_to_tasks": {}}
    answer |= {"reads_to_floor": {}, "jobs_per_second": {}}
    ways = {
        "floor": (floor, subjects),
        "product": (product, subjects),
        "reads": (product, subjects),
        "tasks": (one_task_per_unit, tasks),
    }
    for name, url in places.items():
        runs: dict[str, list[float]] = {way: [] for way, (_, count) in ways.items() if count}
        with ExitStack() as stack:
            filled = {}
            for count in sorted({count for _, count in ways.values() if count}):
                say(f"{name}: fill stores with {count} data subjects")
                filled[count] = stack.enter_context(filling(url, redis_url, count))
            for run in range(1, repeats + 1):
                for way, rates in runs.items():
                    measure, count = ways[way]
                    with stores(filled[count], require="logical" if way == "reads" else "physical") as stage:
                        rates.append(count / measure(stage))
                    say(f"{name}: run {run} of {repeats}, {way}: {rates[-1]:.0f} jobs/s")
        speed = {way: statistics.median(rates) for way, rates in runs.items()}
        answer["jobs_per_second"][name] = {way: round(rate) for way, rate in speed.items()}
        answer["ratio_to_floor"][name] = round(speed["product"] / speed["floor"], 3)
        answer["reads_to_floor"][name] = round(speed["reads"] / speed["floor"], 3)
        if tasks:
            answer["ratio_to_tasks"][name] = round(speed["product"] / speed["tasks"], 2)
    return answer


def product(stage: Stage) -> float:
    """File a request for each subject and work all of them off, in one process without a broker; give the seconds."""
    began = time.perf_counter()
    asked = [
        Request(
            scope=subject(n),
            selector=Selector(kind=SelectorKind.SUBJECT),
            reason=Reason.OPERATOR,
            requested_by="bench",
        )
        for n in range(stage.count)
    ]
    for start in range(0, stage.count, FILED_TOGETHER):
        accept_all(asked[start : start + FILED_TOGETHER], stage.control.acceptance)
    while due := stage.control.ledger.due(list(stage.engine.adapters)):
        drain(stage.engine, *due[0])
    took = time.perf_counter() - began
    with stage.control.database.begin() as connection:
        states = set(connection.exec_driver_sql("SELECT state FROM deletion_jobs").scalars())
    if states != {"completed"}:
        sys.exit(f"the product did not finish: {states}")
    return took


def floor(stage: Stage) -> float:
    """Delete each subject's facts in a transaction, and its answers in a call; give the seconds."""
    delete_facts, delete_answers = by_hand(stage)
    began = time.perf_counter()
    for n in range(stage.count):
        delete_facts(n)
        delete_answers(n)
    return time.perf_counter() - began


def one_task_per_unit(stage: Stage) -> float:
    """Do the floor's deletes in Celery tasks, one for each of `UNITS`; the looks do nothing.

    Give the seconds. An error of a task is raised here.
    """
    delete_facts, delete_answers = by_hand(stage)
    # Through the cache's Redis: Kombu's broker in memory is one for the whole process, and loses messages between runs.
    broker = stage.control.settings.adapters["cache"]["url"]
    app = Celery("bench", broker=broker)  # type: ignore[no-untyped-call] # Celery's edge
    mine = {"task_default_queue": f"bench-{uuid4()}"}
    app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=8, **mine)
    done, failed = list[int](), list[Exception]()

    # Shared tasks would be those of every later app of this process: an earlier run's, with its queue.
    @app.task(name="unit", shared=False)  # type: ignore[no-untyped-call, untyped-decorator] # Celery's edge
    def unit(n: int, step: int) -> None:
        try:
            match UNITS[step]:
                case "erase-memory":
                    delete_facts(n)
                case "erase-cache":
                    delete_answers(n)
                case _:
                    pass
        except Exception as error:
            failed.append(error)
            raise
        if step + 1 < len(UNITS):
            unit.delay(n, step + 1)
        else:
            done.append(n)

    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
        began = time.perf_counter()
        for n in range(stage.count):
            unit.delay(n, 0)
        while len(done) < stage.count:
            if failed:
                raise failed[0]
            time.sleep(0.005)
        return time.perf_counter() - began


def by_hand(stage: Stage) -> tuple[Callable[[int], None], Callable[[int], None]]:
    """Give the two deletes of the script: what each needs to know is looked up before the clock starts."""
    client: Any = stage.cache.client()
    answers: dict[bytes, list[bytes]] = {}
    for key in client.scan_iter(match="*:a:*", count=1000):
        answers.setdefault(key.split(b":a:")[0], []).append(key)
    keys = list(answers.values())
    url = str(stage.control.settings.adapters["memory"]["url"])
    delete, opened = _delete_by_driver(settings.inside(url, stage.control.settings.state_dir))
    stage.closing.callback(opened.close)

    def delete_answers(n: int) -> None:
        client.unlink(*keys[n])

    return delete, delete_answers


def _delete_by_driver(url: str) -> tuple[Callable[[int], None], Any]:
    """Delete as a script does, by the driver alone and with the settings that the product has."""
    if url.startswith("sqlite"):
        lite = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
        lite.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;")

        def in_file(n: int) -> None:
            lite.execute("BEGIN IMMEDIATE")
            lite.execute("DELETE FROM facts WHERE tenant = 'bench' AND user_id = ?", (f"user-{n}",))
            lite.execute("COMMIT")

        return in_file, lite
    server = psycopg.connect(url.replace("+psycopg", ""))

    def in_server(n: int) -> None:
        server.execute("DELETE FROM facts WHERE tenant = 'bench' AND user_id = %s", (f"user-{n}",))
        server.commit()

    return in_server, server
