"""Every table of every store, whoever made it: what it holds of a person goes with them, or it says why not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from adapters.backup.manifest import Policy
from adapters.drafts import Fault, Step
from adapters.memory import Reach
from adapters.memory.chains import TaskScope
from adapters.vector import Point
from orchestrator import (
    Erased,
    EraseOrder,
    Reason,
    Scope,
    Selector,
    SelectorKind,
    StoreUnreachable,
    Target,
)
from orchestrator.domain.codes import HoldReason, WaiverReason
from orchestrator.domain.job import Result, Waiver
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from orchestrator.service.hold import HoldRequest, place
from tests.integration.five_stores import Died
from tests.integration.tables_harness import (
    ELSEWHERE,
    EMPTIED,
    LINKED,
    NAMED,
    NOBODY,
    UNUSED,
    Deployment,
    deployed,
)
from tests.servers import fake_redis

ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = Scope(tenant="acme", user="berta", project="trips")
TOLD = {
    ANNA: {"passport": "The passport number is P1234567.", "meal": "Eats neither nuts nor meat."},
    BERTA: {"seat": "Sits at the aisle.", "hotel": "Likes quiet rooms."},
}
TEXTS = {"P1234567", "p1234567", "passport", "neither nuts", "Which of anna"}
WORDS = {*TEXTS, "anna"}


@pytest.fixture(params=["sqlite", "postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    url = str(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else None
    with fake_redis() as redis_url, deployed(tmp_path / "state", redis_url, url) as opened:
        yield opened


def tell(made: Deployment, who: Scope) -> dict[str, str]:
    """Let a person tell facts and memories, and let each store have something made from them; give ids of the facts."""
    store, chains, task = made.memory.store, made.memory.chains, TaskScope(who.user, "trips", who.tenant)
    turn, summary = f"{who.user}/turn-6", f"{who.user}/summary-8"
    store.register_source(who, turn)
    store.register_source(who, summary, kind="model", derived_from=[turn])
    for key, text in TOLD[who].items():
        store.put(who, key, text, turn, user_statement=True)
        memory = chains.remember(task, "task", f"So it is: {text}", summary)
        made.memory.preferences.prefer(who, key, f"And always: {text}", turn)
        made.memory.candidates.propose(who, key, f"Or maybe: {text}", summary, proposed_by="summariser")
    chains.correct(task, memory, f"So it is by now: {text}", turn)
    index = made.vector.index(made.memory.masters)
    for fact in store.current(who):
        made_from = Target(kind="fact", id=fact.id, version=fact.version)
        point = Point(made_from=made_from, source=turn, vector=[1.0, 0.5, 0.25, float(len(fact.value))])
        assert index.put(who, [point]).refused == 0
        question = f"Which of {who.user} is {fact.key}?"
        assert made.cache.answers.put(who, question, fact.value, [made_from], store.revision(who))
    for job in ("report-001", "report-002"):
        made.drafts.runtime.submit(who, job)
    made.drafts.runtime.run(who, "report-001")
    made.drafts.runtime.submit(who, "report-003", steps={Step.COLLECT: {key}})
    made.drafts.approvals(lambda _scope: True).request(who, "mail-1", "send-mail", report="report-001")
    made.memory.statements.take(who, "length", "short", turn, reach=Reach.ANSWER)
    with pytest.raises(Died):
        made.drafts.runtime.run(who, "report-002", fault=dying)
    return {fact.key: fact.id for fact in store.current(who)}


def dying(passed: Fault) -> None:
    if passed is Fault.AFTER_DRAFT:
        raise Died


def put_back(made: Deployment) -> None:
    """Bring the source up to date as after a restore."""
    ledger = made.control.ledger
    replayed = made.memory.restore(None, ledger.tombstones(), partial(ledger.raise_epoch, "memory"))
    ledger.note_restore("in place", tombstones=0, erased=replayed.erased, began=made.clock.now())


def request(made: Deployment, selector: Selector, scope: Scope) -> str:
    asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
    return str(accept(asked, made.control.acceptance)[0])


def forget(made: Deployment, monkeypatch: pytest.MonkeyPatch, item: str) -> None:
    """Let a job take all of the person, with all that can come in its way: a hold, a failure, a waiver, a window."""
    ledger, erase, away = made.control.ledger, made.cache.erase, [StoreUnreachable()]

    def fail_once(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        if away:
            raise away.pop()
        return erase(orders)

    monkeypatch.setattr(made.cache, "erase", fail_once)
    held = HoldRequest(tenant="acme", user="anna", items=(item,), reason=HoldReason.DISPUTE, requested_by="tester")
    (hold,) = place(held, made.control.acceptance)
    ledger.sweep()
    if made.backup is not None:
        made.backup.take(Policy.REWRITE)
        made.clock.at += timedelta(seconds=1)
        window = made.backup.take(Policy.WINDOW, made.clock.now() + timedelta(days=30))
    waived = request(made, Selector(kind=SelectorKind.KEY, value="meal"), ANNA)
    granted = Waiver(adapter="cache", reason=WaiverReason.OPERATOR, granted_by_ref="0" * 64)
    ledger.waive(waived, granted)
    job = request(made, Selector(kind=SelectorKind.SUBJECT), Scope(tenant="acme", user="anna"))
    assert made.look(WORDS).keys() >= EMPTIED, "the look sees what is there"
    made.run(WORDS)
    assert made.view(job).state is JobState.DERIVED_CLEANUP, "an item is held"
    ledger.release(str(hold), by_ref="0" * 64)
    made.run(WORDS)
    if made.backup is not None:
        assert made.view(job).state is JobState.VERIFIED
        made.clock.at += timedelta(days=31)
        (made.control.settings.state_dir / "backups" / window.file).unlink()
        made.run(WORDS)
    assert (made.view(job).state, made.view(job).result) == (JobState.COMPLETED, Result.ERASED)


@pytest.mark.case(67)
@pytest.mark.case(131)
def test_every_table_is_emptied_of_a_person_or_says_why_not_and_no_file_else_names_them(
    made: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_back(made)
    items = tell(made, ANNA)
    tell(made, BERTA)
    made.memory.plant(b"m" * 32)  # of a scan; on PostgreSQL nobody looks for one
    assert {"P1234567", "anna"} - {word for word in WORDS if word in answers(made)} == {"anna"}, "keys name nobody"
    stays = made.rows_of("berta")
    forget(made, monkeypatch, items["meal"])
    made.memory.uproot(b"m" * 32)
    made.control.scrub()
    left, there = made.look(WORDS), {table for table, _ in made.tables()}
    known = EMPTIED | NAMED.keys() | LINKED.keys() | NOBODY.keys()
    assert there == known - ELSEWHERE[made.database], "a table that is new says what it may hold"
    # Each table was seen with something in it, and each of a person with something of this one.
    assert made.filled == there - UNUSED[made.database]
    assert made.named.keys() == EMPTIED | NAMED.keys()
    # And this is what is left: ids of a person and of sources in some tables, and a text in none.
    assert left == {table: columns for table, (columns, _) in NAMED.items()}
    assert made.look(TEXTS) == {}
    assert made.look(set(plain_hashes())) == {}, "what stands for them was made with a key"
    assert {table: made.count(table, query) for table, query in LINKED.items()} == dict.fromkeys(LINKED, 0)
    assert [word for word in WORDS if word in answers(made)] == []
    # A neighbour has lost nothing.
    assert made.rows_of("berta") == stays
    # Outside of the source no file names the person, and a copy of it holds what the source holds still.
    files = [path for path in made.control.settings.state_dir.rglob("*") if path.is_file()]
    named = {path.name for path in files if any(word.encode() in path.read_bytes() for word in WORDS)}
    assert {name for name in named if not name.startswith("memory.db") and not name.endswith("-memory.db")} == set()


def plain_hashes() -> Iterator[str]:
    """Give what somebody without the keys could make of what they guess."""
    for guess in (ANNA.user, f"{ANNA.tenant}/{ANNA.user}", ANNA.canonical(), *TOLD[ANNA], *TOLD[ANNA].values()):
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "sha3_256"):
            digest = hashlib.new(name, guess.encode())
            yield from (digest.hexdigest(), digest.digest().decode("latin-1"))


def answers(made: Deployment) -> str:
    """Give all that the cache holds, whatever it is, and under which names."""
    client = made.cache.client()
    read = {b"hash": client.hgetall, b"set": client.smembers, b"string": client.get}
    return repr([(key, read[bytes(client.type(key))](key)) for key in client.scan_iter()])  # type: ignore[arg-type]  # no text client
