"""What happens in the demo, in order: two requests, a worker killed in the middle, and a look from every side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapters.cache import CacheAdapter
from adapters.demo import faults
from adapters.demo.processes import Processes, wait_for, was_killed
from adapters.demo.world import OTHER_KEY, READER, SECRET, SECRET_KEY, SECRETS, SOURCE, World
from adapters.memory import MemoryAdapter
from orchestrator import GateRefused, InvalidRequest, open_adapter

CRASH: Final = "after_effect@cache.erase"
ASKED_IN: Final = "trip-planning/turn-20"  # the turn in which the reader asked, which is not what is forgotten
NEW_STATEMENT: Final = "I travel with a new passport now."
WHO: Final = ("--tenant", READER.tenant, "--user", READER.user, "--project", str(READER.project))


@dataclass
class Story:
    """What was done and seen so far."""

    world: World
    processes: Processes
    fault: str | None
    say: Callable[[str], None]
    jobs: list[dict[str, Any]] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    killed: bool = False
    mistyped: int = 0
    before_facts: dict[tuple[str, ...], tuple[Any, ...]] = field(default_factory=dict)
    before_entries: dict[bytes, Any] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim of the demo: what was seen."""

    name: str
    ok: bool
    detail: str


def tell(folder: Path, fault: str | None, say: Callable[[str], None]) -> tuple[Story, list[Check]]:
    """Run the whole story in a folder; give what happened and the checks."""
    if fault is not None and fault not in CHECKS:
        raise InvalidRequest(f"--break takes one of: {', '.join(CHECKS)}", field="break")
    with Processes(folder) as processes:
        code, said = processes.run("init")
        if code:
            raise InvalidRequest(f"init failed: {said}", field="dir")
        processes.start("up", "--workers", "0")
        wait_for("the cache to start", (processes.state / "cache.port").exists)
        memory, cache = open_adapter(processes.state, "memory"), open_adapter(processes.state, "cache")
        assert isinstance(memory, MemoryAdapter)  # noqa: S101 - the configuration that we wrote names ours
        assert isinstance(cache, CacheAdapter)  # noqa: S101
        world = World(memory=memory, cache=cache, folder=folder)
        story = Story(world=world, processes=processes, fault=fault, say=say)
        try:
            _remember(story)
            _forget(story)
            faults.plant(fault, story.world)
            for job in story.jobs:
                _, said = processes.run("receipts", job["id"], "--json")
                story.receipts += [{"job": job["id"], **receipt} for receipt in said["receipts"]]
            return story, [_checked(name, look, story) for name, look in CHECKS.items()]
        finally:
            memory.close()
            cache.close()


def _checked(name: str, look: Callable[[Story], tuple[bool, str]], story: Story) -> Check:
    ok, detail = look(story)
    return Check(name=name, ok=ok, detail=detail)


def _remember(story: Story) -> None:
    world = story.world
    count = world.populate()
    story.say(f"{count} facts of five users in two tenants are stored; answers are cached")
    story.hits["before"] = world.raw_hits()
    seen = _current(story).get(SECRET_KEY) == SECRET and len(world.answers()) == 2 * len(SECRETS)
    if not seen or not story.hits["before"]:
        message = "the secret was not there before: the demo would show nothing"
        raise InvalidRequest(message, field="demo")
    story.say(f"found: `memory current` gives the secret, the cache too, the raw file {story.hits['before']} times")
    story.before_facts, story.before_entries = world.facts(), world.entries()


def _forget(story: Story) -> None:
    run = story.processes.run
    worker = story.processes.start("worker", crash_at=CRASH)
    code, job = run("request", *WHO, "--source", SOURCE, "--reason", "user_request", "--reference", ASKED_IN, "--json")
    if code:
        raise InvalidRequest(f"the request was not accepted (exit {code})", field="demo")
    story.say(f"filed: forget source {SOURCE}, job {job['id']}")
    wait_for("the worker to be killed", lambda: worker.poll() is not None)
    story.killed = was_killed(worker)
    if story.fault == "killed_worker_is_survived":
        faults.forget_the_attempt(story.world)
    story.say("the worker was killed after the cache had erased and before it was written down; a new one starts")
    story.processes.start("worker")
    run("watch", job["id"])
    _, second = run("request", *WHO, "--key", OTHER_KEY, "--reason", "user_request", "--wait", "--json")
    story.say(f"filed: forget key {OTHER_KEY}, job {second['id']}: {second['state']}")
    if story.fault == "nothing_found_is_said":
        faults.remember_the_mistyped(story.world)
    story.mistyped, _ = run("request", *WHO, "--key", faults.MISTYPED, "--reason", "user_request", "--wait", "--json")
    _, listed = run("list", "--tenant", READER.tenant, "--json")
    story.jobs = [said for said in listed["jobs"] if said["id"] in {job["id"], second["id"]}]
    if story.fault == "raw_file_holds_nothing":
        faults.leave_the_bytes(story.world)
    # Before another fault is planted: a fact that is brought back stands in the file as well.
    story.hits["after"] = story.world.raw_hits()


def _current(story: Story) -> dict[str, str]:
    """Ask for the reader's facts as a person does, by the command."""
    _, said = story.processes.run("memory", "current", *WHO, "--json")
    return {fact["key"]: fact["value"] for fact in said["facts"]}


def _memory_gives_nothing(story: Story) -> tuple[bool, str]:
    texts = [str(part) for row in story.world.facts().values() for part in row] + list(_current(story).values())
    hits = sum(secret in text for text in texts for secret in SECRETS)
    return hits == 0, f"{hits} of {len(texts)} values read hold a secret"


def _raw_file_holds_nothing(story: Story) -> tuple[bool, str]:
    reached = [r["reach"] for r in story.receipts if (r["adapter"], r["phase"]) == ("memory", "verify")]
    detail = f"{story.hits['after']} of {story.hits['before']} hits are left; the looks reached: {', '.join(reached)}"
    return story.hits["after"] == 0 and set(reached) == {"physical"}, detail


def _cache_gives_nothing(story: Story) -> tuple[bool, str]:
    values = [value for entry in story.world.entries().values() for value in entry.values()]
    hits = sum(secret.encode() in value for value in values for secret in SECRETS) + len(story.world.answers())
    return hits == 0, f"{hits} of {len(values)} values read hold a secret"


def _killed_worker_is_survived(story: Story) -> tuple[bool, str]:
    erase = [r for r in story.receipts if r["job"] == story.jobs[0]["id"] and r["adapter"] == "cache"]
    second = [r for r in erase if r["phase"] == "erase" and r["attempt"] == 2 and r["already_absent"] > 0]  # noqa: PLR2004
    detail = f"killed: {story.killed}; " + "; ".join(
        f"attempts {r['attempt']}, already_absent {r['already_absent']}, {r['outcome']}"
        for r in erase
        if r["phase"] == "erase"
    )
    return story.killed and len(second) == 1 and story.jobs[0]["state"] == "completed", detail


def _neighbour_facts_are_identical(story: Story) -> tuple[bool, str]:
    after = story.world.facts()
    expected = {
        place: row
        for place, row in story.before_facts.items()
        if not any(secret in str(part) for part in row for secret in SECRETS)
    }
    changed = sum(after.get(place) != row for place, row in expected.items())
    return changed == 0 and bool(expected), f"{changed} of {len(expected)} other facts changed"


def _neighbour_answers_are_identical(story: Story) -> tuple[bool, str]:
    after = story.world.entries()
    expected = {
        key: entry
        for key, entry in story.before_entries.items()
        if not any(secret.encode() in value for value in entry.values() for secret in SECRETS)
    }
    changed = sum(after.get(key) != entry for key, entry in expected.items())
    return changed == 0 and bool(expected), f"{changed} of {len(expected)} other cached answers changed"


def _transcript_is_refused(story: Story) -> tuple[bool, str]:
    """Extract the old transcript again, as a summariser would: the file itself lies outside the stores."""
    text = (story.world.folder / "transcript.txt").read_text()
    try:
        story.world.memory.store.put(READER, SECRET_KEY, text, SOURCE)
    except GateRefused as refused:
        return True, f"refused: {refused.refusal.value}"
    return False, "the old transcript was learned again"


def _fresh_statement_is_admitted(story: Story) -> tuple[bool, str]:
    store = story.world.memory.store
    try:
        store.register_source(READER, "trip-planning/turn-31")
        version = store.put(READER, SECRET_KEY, NEW_STATEMENT, "trip-planning/turn-31", user_statement=True)
    except GateRefused as refused:
        return False, f"refused: {refused.refusal.value}"
    return story.world.current().get(SECRET_KEY) == NEW_STATEMENT, f"stored as version {version}"


def _one_receipt_per_unit(story: Story) -> tuple[bool, str]:
    wanted = sorted([("memory", "revoke"), *((a, p) for a in ("memory", "cache") for p in ("erase", "verify"))])
    told = [sorted((r["adapter"], r["phase"]) for r in story.receipts if r["job"] == job["id"]) for job in story.jobs]
    return told == [wanted] * len(story.jobs), f"{[len(t) for t in told]} receipts, {len(wanted)} expected of each job"


def _ledger_names_nobody(story: Story) -> tuple[bool, str]:
    words = (READER.user, SECRET, *SECRETS, "What may I not eat?")
    hits, values = faults.search_ledger(story.world, words)
    return hits == 0 and values > 0, f"{hits} of {values} values in the control database name a person or a text"


def _nothing_found_is_said(story: Story) -> tuple[bool, str]:
    return story.mistyped == 5, f"a mistyped key ends with exit code {story.mistyped}"  # noqa: PLR2004 - documented


CHECKS: Final[dict[str, Callable[[Story], tuple[bool, str]]]] = {
    "memory_gives_nothing": _memory_gives_nothing,
    "raw_file_holds_nothing": _raw_file_holds_nothing,
    "cache_gives_nothing": _cache_gives_nothing,
    "killed_worker_is_survived": _killed_worker_is_survived,
    "neighbour_facts_are_identical": _neighbour_facts_are_identical,
    "neighbour_answers_are_identical": _neighbour_answers_are_identical,
    "transcript_is_refused": _transcript_is_refused,
    "fresh_statement_is_admitted": _fresh_statement_is_admitted,
    "one_receipt_per_unit": _one_receipt_per_unit,
    "ledger_names_nobody": _ledger_names_nobody,
    "nothing_found_is_said": _nothing_found_is_said,
}
