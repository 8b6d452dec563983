"""What happens in the demo, in order: people tell things, and later some of it is to be forgotten, everywhere.

Principle: what is read here for the checks is written down as it was seen; nothing is judged yet.
"""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from adapters.backup import Policy
from adapters.demo import faults_on_the_way as faults
from adapters.demo.people import CLIENT, MISTYPED, OTHER_KEY, READER, SECRET, SECRET_KEY, SOURCE
from adapters.demo.processes import LOG, Processes, wait_for, was_killed
from adapters.demo.progress import Narrator
from adapters.demo.stage import Stage, Told
from adapters.demo.traces import FILES, traces
from adapters.demo.world import STORES, World
from orchestrator import InvalidRequest

ACTS: Final = 6
CRASH: Final = "after_effect@cache.erase"
ASKED_IN: Final = "trip-planning/turn-20"  # the turn in which the reader asked, which is not what is forgotten
SHORTEST: Final = 8.0
"""Seconds for which the copy is kept that nobody can edit: the second job has to be verified before."""
QUICK: Final = 7.0
"""Seconds in which the first job is through; for each one more the copy is kept `SLOWER` seconds longer."""
SLOWER: Final = 3.0
EXPIRES_IN: Final = 3.0
"""Seconds after which something expires: by then vector and answers were made of it."""
WHO: Final = ("--tenant", READER.tenant, "--user", READER.user, "--project", str(READER.project))
WHOM: Final = ("--tenant", CLIENT.tenant, "--user", CLIENT.user)
REASON: Final = ("--reason", "user_request")
_STATES: Final = "SELECT id, state FROM deletion_jobs"
_IN_FORCE: Final = "SELECT 1 FROM legal_holds WHERE id = ? AND in_force_at_us IS NOT NULL"


@contextmanager
def played(folder: Path, fault: str | None, narrator: Narrator) -> Iterator[Stage]:
    """Let the story happen in a folder, and give what the checks look at while the processes still run."""
    with Processes(folder) as processes, ExitStack() as stack:
        narrator.act("Five stores are set up, and people tell things")
        code, said = processes.run("init", *(word for store in STORES for word in ("--store", store)))
        if code:
            raise InvalidRequest(f"init failed: {said}", field="dir")
        processes.start("up", "--workers", "0")
        worker = processes.start("worker", crash_at=CRASH)
        world = stack.enter_context(closing(World.open(folder)))
        stack.enter_context(_logging_into(folder / LOG))
        stage = Stage(world=world, processes=processes, told=_remember(world, processes, narrator))
        began = time.monotonic()
        _by_source(stage, worker, fault, narrator)
        late = max(0.0, time.monotonic() - began - QUICK)
        _take_copy_to_keep(stage, SHORTEST + SLOWER * late, narrator)
        _by_key(stage, fault, narrator)
        _whole_subject(stage, narrator)
        _outlive(stage, narrator)
        _ask(stage, narrator)
        yield stage


@contextmanager
def _logging_into(path: Path) -> Iterator[None]:
    """Let the stores that we opened ourselves write their log lines where those of all processes go."""
    before = structlog.get_config()
    with path.open("a") as log:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(log))
        try:
            yield
        finally:
            structlog.configure(**before)


def _remember(world: World, processes: Processes, narrator: Narrator) -> Told:
    versions = world.tell()
    world.derive()
    wait_for("the cache to start", (processes.state / "cache.port").exists)
    world.answer()
    before = world.snapshot()
    narrator.say(
        f"stored: {versions} versions of facts of five users in two tenants; made of them: "
        f"{len(before.points)} vectors, {len(before.answers)} answers, {len(before.drafts)} drafts"
    )
    with closing(sqlite3.connect(world.source)) as source, closing(sqlite3.connect(world.set_aside)) as aside:
        source.backup(aside)
    rewritten = world.backup.take(Policy.REWRITE).file
    narrator.say(
        "copied: a backup that jobs may rewrite, and a file that somebody puts aside where no store knows of it"
    )
    told = Told(before=before, traces={store: traces(world, store) for store in FILES}, rewritten=rewritten)
    there = {fact.key: fact.value for fact in world.memory.store.current(READER)}.get(SECRET_KEY) == SECRET
    if not (there and len(world.cached()) == 4 and all(min(seen) for seen in told.traces.values())):  # noqa: PLR2004
        message = "the secrets were not there before: the demo would show nothing"
        raise InvalidRequest(message, field="demo")
    narrator.say(
        "found: the secrets in " + ", ".join(f"{name} files {n.gone} times" for name, n in told.traces.items())
    )
    return told


def _by_source(stage: Stage, worker: subprocess.Popen[bytes], fault: str | None, narrator: Narrator) -> None:
    """Forget a source, with a worker that dies on the way; meanwhile a whole subject is asked for, and held."""
    run, told = stage.processes.run, stage.told
    narrator.act("A source is forgotten, though a worker dies on the way")
    told.jobs["source"] = _id(run("request", *WHO, "--source", SOURCE, *REASON, "--reference", ASKED_IN, "--json"))
    narrator.say(f"filed: forget source {SOURCE}, job {told.jobs['source']}")
    wait_for("the worker to be killed", lambda: worker.poll() is not None)
    told.killed = was_killed(worker)
    if fault == "killed_worker_is_survived":
        faults.forget_the_attempt(stage.world)
    narrator.say("killed: the worker, after the cache had erased and before it was written down; a new one starts")
    stage.processes.start("worker")
    held, mistyped = stage.processes.together(
        ("hold", "add", *WHOM, "--subject", "--reason", "litigation", "--json"),
        ("request", *WHO, "--key", MISTYPED, *REASON, "--json"),
    )
    told.hold, told.mistyped = str(_document(held)["holds"][0]["id"]), (_id(mistyped), 0)
    wait_for("the hold to be in force", lambda: stage.ledger(_IN_FORCE, told.hold))
    told.held = (stage.world.snapshot(),)
    told.jobs["subject"] = _id(run("request", *WHOM, "--subject", *REASON, "--json"))
    narrator.say(f"filed: forget all of a user, job {told.jobs['subject']}; a legal hold keeps it waiting")
    _wait_for_state(stage, ["source"], "completed")
    narrator.say("completed: the first job")


def _take_copy_to_keep(stage: Stage, seconds: float, narrator: Narrator) -> None:
    told = stage.told
    narrator.act("A key is forgotten, though one copy cannot be edited")
    told.until = datetime.now(UTC) + timedelta(seconds=seconds)
    told.kept = stage.world.backup.take(Policy.WINDOW, told.until).file
    narrator.say(f"copied: a backup that nobody may edit; it is kept for {seconds:.0f} s")


def _by_key(stage: Stage, fault: str | None, narrator: Narrator) -> None:
    told = stage.told
    told.jobs["key"] = _id(stage.processes.run("request", *WHO, "--key", OTHER_KEY, *REASON, "--json"))
    narrator.say(f"filed: forget key {OTHER_KEY}, job {told.jobs['key']}")
    told.expires = stage.world.expire(EXPIRES_IN)
    _wait_for_state(stage, ["key"], "verified")
    if fault == "hold_keeps_everything":
        faults.change_what_is_held(stage.world)
    told.held = (*told.held, stage.world.snapshot())
    told.waiting = _states(stage)[told.jobs["subject"]]
    narrator.say(f"verified: the job by key; the one under the hold is still {told.waiting}")


def _whole_subject(stage: Stage, narrator: Narrator) -> None:
    """Lift the hold, and let go what has expired meanwhile."""
    told = stage.told
    narrator.act("The hold is lifted, and something else has expired")
    status, released = stage.processes.together(
        ("status", told.jobs["key"], "--json"), ("hold", "release", told.hold, "--json")
    )
    _document(released)
    told.status = _document(status)
    narrator.say(f"asked: `status` says {told.status['state']}, and until when a copy lives")
    time.sleep(max(0.0, told.expires - time.time()))
    purged, watched = stage.processes.together(("purge-expired", "--json"), ("watch", told.mistyped[0]))
    (told.jobs["expired"],) = _document(purged)["jobs"]
    told.mistyped = (told.mistyped[0], watched[0])
    narrator.say(f"filed: what has expired goes, job {told.jobs['expired']}")
    _wait_for_state(stage, ["subject", "expired"], "verified")
    narrator.say("verified: both; the held job went on by itself")


def _outlive(stage: Stage, narrator: Narrator) -> None:
    told = stage.told
    narrator.act("The copy's time ends")
    assert told.until is not None  # noqa: S101 - set when it was taken
    time.sleep(max(0.0, (told.until - datetime.now(UTC)).total_seconds()))
    _wait_for_state(stage, list(told.jobs), "completed")
    narrator.say("completed: every job, when whoever kept that copy had taken it away")


def _ask(stage: Stage, narrator: Narrator) -> None:
    """Ask once more as a person does, by commands."""
    told = stage.told
    narrator.act("What is left is looked at from every side")
    listed, current = stage.processes.together(
        ("list", "--tenant", READER.tenant, "--json"),
        ("memory", "current", *WHO, "--json"),
    )
    ours = set(told.jobs.values())
    told.listed = [job for job in _document(listed)["jobs"] if job["id"] in ours]
    told.current = {fact["key"]: fact["value"] for fact in _document(current)["facts"]}


def _id(answer: tuple[int, Any]) -> str:
    return str(_document(answer)["id"])


def _document(answer: tuple[int, Any]) -> dict[str, Any]:
    """Give what a command printed; one that was refused ends the demo."""
    code, said = answer
    if code or not isinstance(said, dict):
        message = f"a command of the demo was refused (exit code {code}); --keep leaves its log in the folder"
        raise InvalidRequest(message, field="demo")
    return said


def _states(stage: Stage) -> dict[str, str]:
    return {str(job): str(state) for job, state in stage.ledger(_STATES)}


def _wait_for_state(stage: Stage, names: Collection[str], state: str) -> None:
    reached = {state, "completed"}
    jobs = [stage.told.jobs[name] for name in names]

    def is_so() -> bool:
        _keep_no_longer(stage)
        states = _states(stage)
        return all(states[job] in reached for job in jobs)

    wait_for(f"{len(jobs)} jobs to be {state}", is_so)


def _keep_no_longer(stage: Stage) -> None:
    """Take the copy away when its time is over, as whoever keeps it has to."""
    told = stage.told
    if told.until is not None and datetime.now(UTC) >= told.until:
        (stage.world.copies / told.kept).unlink(missing_ok=True)
