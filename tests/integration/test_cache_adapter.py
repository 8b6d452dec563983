"""The cache under the contract: what find lists, erase removes and verify sees, over the fake and the real Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
import redis
import structlog
from structlog.testing import capture_logs

from adapters.cache import AnswerCache, CacheAdapter
from orchestrator import (
    MAX_PAGE,
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    ErrorCode,
    Gate,
    InvalidRequest,
    Keyring,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    StoreUnreachable,
    Target,
    Transient,
)
from orchestrator.ids import uuid7
from tests.fakes import FakeClock
from tests.servers import fake_redis, real_redis

ANNA = Scope(tenant="tenant-a", user="user:1", project="trips")
ELSEWHERE = replace(ANNA, project="research")
EVERYWHERE = replace(ANNA, project=None)
NEIGHBOUR = replace(ANNA, user="user:10")
FOREIGN = replace(ANNA, tenant="tenant-b")
PASSPORT = Target(kind="fact", id="f-1", version=2)
ALLERGY = Target(kind="fact", id="f-2", version=1)


@dataclass
class Cache:
    """An adapter, and a client of the test's own behind its back."""

    adapter: CacheAdapter
    raw: redis.Redis
    gate: Gate
    clock: FakeClock
    revision: int = 1
    jobs: list[UUID] = field(default_factory=list)

    @property
    def answers(self) -> AnswerCache:
        return self.adapter.answers

    def fill(self, scope: Scope, question: str, *made_from: Target, revision: int | None = None) -> None:
        assert self.answers.put(scope, question, f"answer to {question}", made_from, revision or self.revision)

    def order(self, scope: Scope = ANNA, kind: SelectorKind = SelectorKind.KEY, **changes: object) -> EraseOrder:
        value = None if kind is SelectorKind.SUBJECT else "passport"
        made = EraseOrder(
            job=uuid7(),
            unit=uuid7(),
            key="k",
            scope=scope,
            selector=Selector(kind=kind, value=value),
            deadline=self.clock.now() + timedelta(seconds=60),
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    def key(self, scope: Scope, question: str) -> str:
        base = self.gate.handle(scope.tenant, "cache-tenant")[:16] + self.gate.handle(scope.tenant, "cache", scope.user)
        return f"cache:{{{base}}}:a:{self.gate.handle(scope.tenant, 'cache-answer', scope.canonical(), question)}"

    def found(self, order: EraseOrder) -> tuple[Target, ...]:
        (holding,) = self.adapter.find([order])
        return holding.targets

    def forget(self, order: EraseOrder) -> Erased:
        (answer,) = self.adapter.erase([replace(order, targets=self.found(order))])
        return answer

    def remaining(self, order: EraseOrder) -> int:
        (seen,) = self.adapter.verify([order])
        return seen.remaining

    def dump(self) -> dict[bytes | str, object]:
        return {k: dict(self.raw.hgetall(k)) for k in self.raw.scan_iter(_type="hash")}


def build(url: str, folder: Path, gate: Gate, clock: FakeClock, **options: object) -> CacheAdapter:
    context = AdapterContext(clock=clock, gate=gate, log=structlog.get_logger(), state_dir=folder)
    return CacheAdapter(context, url=url, **options)


@pytest.fixture(scope="module", params=["fakeredis", "redis"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    serve = fake_redis() if request.param == "fakeredis" else real_redis(tmp_path_factory.mktemp("redis"))
    with serve as url:
        yield url


@pytest.fixture
def redis_url(server: str) -> str:
    with redis.Redis.from_url(server) as client:
        client.flushall()
    return server


@pytest.fixture
def cache(redis_url: str, tmp_path: Path) -> Iterator[Cache]:
    gate, clock = Gate(Keyring.create()), FakeClock()
    adapter = build(redis_url, tmp_path, gate, clock)
    with redis.Redis.from_url(redis_url) as raw:
        yield Cache(adapter=adapter, raw=raw, gate=gate, clock=clock)
        adapter.close()


def test_answer_is_given_back_in_exactly_its_scope(cache: Cache) -> None:
    cache.fill(ANNA, "Which passport?", PASSPORT)
    assert cache.answers.get(ANNA, "Which passport?") == "answer to Which passport?"
    for scope in (ELSEWHERE, EVERYWHERE, NEIGHBOUR, FOREIGN):
        assert cache.answers.get(scope, "Which passport?") is None
    assert cache.answers.get(ANNA, "which passport?") is None


def test_answer_expires_and_is_then_no_target(cache: Cache) -> None:
    assert cache.answers.put(ANNA, "soon gone", "x", [PASSPORT], 1, 3600)
    key = cache.key(ANNA, "soon gone")
    assert 0 < cache.raw.ttl(key) <= 3600
    cache.raw.delete(key)  # as expiry does: the set of keys still lists it
    for order in (cache.order(known=(PASSPORT,)), cache.order(kind=SelectorKind.SUBJECT)):
        assert cache.found(order) == ()
        assert cache.remaining(order) == 0
    (holding,) = cache.adapter.find([cache.order()])
    assert holding.no_lineage == 0


def test_second_fill_replaces_the_lineage_and_the_expiry(cache: Cache) -> None:
    cache.answers.put(ANNA, "q", "old", [PASSPORT], 1, 10)
    cache.answers.put(ANNA, "q", "new", [ALLERGY], 1, 9999)
    assert cache.answers.get(ANNA, "q") == "new"
    assert cache.raw.ttl(cache.key(ANNA, "q")) > 5000
    assert cache.found(cache.order(known=(PASSPORT,))) == ()


@pytest.mark.parametrize(("field_name", "revision", "ttl"), [("revision", -1, 1), ("ttl", 1, 0)])
def test_fill_out_of_range_is_refused(cache: Cache, field_name: str, revision: int, ttl: float) -> None:
    with pytest.raises(InvalidRequest, match=field_name):
        cache.answers.put(ANNA, "q", "a", [], revision, ttl)


def test_no_key_and_no_bookkeeping_names_a_person_or_a_question(cache: Cache) -> None:
    scope = Scope(tenant="tenant-secret", user="hans@example.org", project="project-secret")
    cache.fill(scope, "question-secret", PASSPORT)
    cache.forget(cache.order(scope, known=(PASSPORT,), revision=4))
    cache.fill(scope, "question-secret", PASSPORT, revision=4)
    text = b" ".join(
        part
        for key in cache.raw.scan_iter()
        for part in (key, *(cache.raw.smembers(key) if cache.raw.type(key) == b"set" else ()))
    )
    assert text.count(b"cache:{") >= 4
    for word in (b"hans", b"secret"):
        assert word not in text


def test_find_follows_lineage_by_id_and_version(cache: Cache) -> None:
    cache.fill(ANNA, "both", PASSPORT, ALLERGY)
    cache.fill(ANNA, "older version", replace(PASSPORT, version=1))
    cache.fill(ANNA, "longer id", replace(PASSPORT, id="f-10"))
    cache.fill(ANNA, "other kind", replace(PASSPORT, kind="summary"))
    cache.fill(ELSEWHERE, "in another project", PASSPORT)
    cache.fill(NEIGHBOUR, "neighbour's", PASSPORT)
    cache.fill(ANNA, "of unknown origin")
    (holding,) = cache.adapter.find([cache.order(known=(PASSPORT,))])
    assert {t.id for t in holding.targets} == {cache.key(ANNA, "both"), cache.key(ELSEWHERE, "in another project")}
    assert {(t.kind, t.derived_of) for t in holding.targets} == {("cache_key", "fact:f-1@2")}
    assert holding.no_lineage == 1
    assert holding.cursor is None


def test_known_target_without_a_version_names_every_version(cache: Cache) -> None:
    cache.fill(ANNA, "one", PASSPORT)
    cache.fill(ANNA, "two", replace(PASSPORT, version=1))
    assert len(cache.found(cache.order(known=(replace(PASSPORT, version=0),)))) == 2


def test_answer_made_from_an_answer_is_found_in_the_next_pass(cache: Cache) -> None:
    cache.fill(ANNA, "first", PASSPORT)
    first = Target(kind="cache_key", id=cache.key(ANNA, "first"))
    cache.fill(ANNA, "second", first)
    assert [t.id for t in cache.found(cache.order(known=(PASSPORT,)))] == [first.id]
    assert [t.id for t in cache.found(cache.order(known=(first,)))] == [cache.key(ANNA, "second")]


def test_subject_is_everything_of_the_scope_and_without_a_project_everything_of_the_user(cache: Cache) -> None:
    for scope in (ANNA, ELSEWHERE, EVERYWHERE, NEIGHBOUR, FOREIGN):
        cache.fill(scope, "with origin", PASSPORT)
        cache.fill(scope, "without")
    here = cache.found(cache.order(kind=SelectorKind.SUBJECT))
    assert {t.id for t in here} == {cache.key(ANNA, q) for q in ("with origin", "without")}
    (holding,) = cache.adapter.find([cache.order(EVERYWHERE, SelectorKind.SUBJECT)])
    wanted = {cache.key(s, q) for s in (ANNA, ELSEWHERE, EVERYWHERE) for q in ("with origin", "without")}
    assert {t.id for t in holding.targets} == wanted
    assert holding.no_lineage == 0


def test_erase_takes_its_targets_and_leaves_every_neighbour_as_it_was(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    cache.fill(ANNA, "stays", ALLERGY)
    for scope in (ELSEWHERE, NEIGHBOUR, FOREIGN):
        cache.fill(scope, "goes", ALLERGY)
    before = cache.dump()
    order = cache.order(known=(PASSPORT,), revision=3)
    assert cache.forget(order) == Erased(erased=1)
    del before[cache.key(ANNA, "goes").encode()]
    assert cache.dump() == before
    assert cache.remaining(order) == 0
    assert cache.key(ANNA, "goes").encode() not in cache.raw.smembers(f"{cache.key(ANNA, '').split(':a:')[0]}:keys")


def test_repeat_finds_everything_already_absent(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=3)
    full = replace(order, targets=cache.found(order))
    assert cache.adapter.erase([full]) == [Erased(erased=1)]
    before = cache.dump()
    assert cache.adapter.erase([full]) == [Erased(already_absent=1)]
    assert cache.dump() == before


def test_two_orders_of_a_batch_that_name_one_key_count_it_once(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    target = Target(kind="cache_key", id=cache.key(ANNA, "goes"))
    orders = [cache.order(targets=(target,), revision=2), cache.order(targets=(target,), revision=2)]
    assert cache.adapter.erase(orders) == [Erased(erased=1), Erased(already_absent=1)]


def test_another_users_key_is_not_touched_and_never_counts_as_absent(cache: Cache) -> None:
    for scope in (FOREIGN, NEIGHBOUR):
        cache.fill(scope, "goes", PASSPORT)
    before = cache.dump()
    there, foreign = (Target(kind="cache_key", id=cache.key(s, "goes")) for s in (NEIGHBOUR, FOREIGN))
    gone = Target(kind="cache_key", id=cache.key(NEIGHBOUR, "never asked"))
    order = cache.order(kind=SelectorKind.SUBJECT, targets=(there, foreign, gone), known=(PASSPORT,), revision=2)
    (answer,) = cache.adapter.erase([order])
    assert answer == Erased(already_absent=2)  # the other tenant's and the one that is not there
    assert cache.dump() == before
    assert cache.remaining(order) == 0


def test_bookkeeping_is_not_removed_and_counts_as_left_over(cache: Cache) -> None:
    cache.fill(ANNA, "stays", ALLERGY)
    base = cache.key(ANNA, "").split(":a:")[0]
    books = tuple(Target(kind="cache_key", id=f"{base}:{name}") for name in ("keys", "scopes", "rev:unknown"))
    assert cache.adapter.erase([cache.order(targets=books)]) == [Erased(already_absent=1)]
    assert cache.raw.exists(*(t.id for t in books)) == 2


def test_order_without_targets_removes_nothing_but_raises_the_fence(cache: Cache) -> None:
    cache.fill(ANNA, "stays", PASSPORT)
    before = cache.dump()
    assert cache.adapter.erase([cache.order(revision=5)]) == [Erased()]
    assert cache.dump() == before
    assert not cache.answers.put(ANNA, "late", "x", [PASSPORT], 4)
    assert cache.answers.put(ANNA, "in time", "x", [ALLERGY], 5)


@pytest.mark.parametrize(
    "name",
    ["user:1", "user:10", "User:1", "*", "user:*", "user?1", "[a-z]", "a\\*", "'\"`;--", "line\nbreak", "😀",
     "caf\u00e9", "cafe\u0301", "{brace}", "x" * 512, "%_"],
)  # fmt: skip
def test_names_are_taken_exactly(cache: Cache, name: str) -> None:
    others = [n for n in ("user:1", "user:10", "User:1", "😀", "caf\u00e9", "cafe\u0301", "anything") if n != name]
    for user in (name, *others):
        cache.fill(replace(ANNA, user=user), f"question {name}", replace(PASSPORT, id=name))
    before = cache.dump()
    order = cache.order(replace(ANNA, user=name), known=(replace(PASSPORT, id=name),), revision=2)
    assert cache.forget(order) == Erased(erased=1)
    assert cache.remaining(order) == 0
    del before[cache.key(replace(ANNA, user=name), f"question {name}").encode()]
    assert cache.dump() == before


def test_prefix_of_a_neighbouring_cache_is_another_cache(cache: Cache, redis_url: str, tmp_path: Path) -> None:
    other = build(redis_url, tmp_path, cache.gate, cache.clock, prefix="cache-2")
    other.answers.put(ANNA, "q", "x", [PASSPORT], 1)
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    assert cache.forget(order) == Erased(erased=1)
    assert cache.remaining(order) == 0
    assert other.answers.get(ANNA, "q") == "x"
    other.close()


def plant(cache: Cache, count: int) -> None:
    """Write many entries as the adapter keeps them, faster than one fill after the other."""
    base = cache.key(ANNA, "").split(":a:")[0]
    scope = cache.gate.handle(ANNA.tenant, "cache-scope", ANNA.canonical())
    entry: dict[str, str | int] = {
        "answer": "x",
        "scope": scope,
        "made_from": json.dumps(["fact:f-1@2"]),
        "revision": "1",
    }
    keys = [f"{base}:a:{n:032x}" for n in range(count)]
    for start in range(0, count, 1000):
        with cache.raw.pipeline(transaction=False) as pipeline:
            for key in keys[start : start + 1000]:
                for name, value in entry.items():
                    pipeline.hset(key, name, value)
            pipeline.sadd(f"{base}:keys", *keys[start : start + 1000])
            pipeline.execute()


def pages(cache: Cache, order: EraseOrder) -> list[Sequence[Target]]:
    found: list[Sequence[Target]] = []
    while True:
        (holding,) = cache.adapter.find([order])
        found.append(holding.targets)
        if holding.cursor is None:
            return found
        order = replace(order, cursor=holding.cursor)


@pytest.mark.parametrize(("count", "sizes"), [(1000, [1000]), (1001, [1000, 1]), (10_001, [1000] * 10 + [1])])
def test_many_entries_go_in_pages(cache: Cache, count: int, sizes: list[int]) -> None:
    plant(cache, count)
    cache.fill(NEIGHBOUR, "stays", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    assert cache.remaining(order) == count
    found = pages(cache, order)
    assert [len(page) for page in found] == sizes
    assert max(sizes) <= MAX_PAGE
    assert len({target.id for page in found for target in page}) == count
    erased = cache.adapter.erase([replace(order, targets=tuple(page)) for page in found])
    assert [answer.erased for answer in erased] == sizes
    assert cache.remaining(order) == 0
    assert len(cache.dump()) == 1


def test_batch_of_more_orders_than_one_round_trip(cache: Cache) -> None:
    people = [replace(ANNA, user=f"user-{n}") for n in range(cache.adapter.max_batch + 1)]
    for person in people:
        for n in range(3):
            cache.fill(person, f"q{n}", PASSPORT)
    orders = [cache.order(person, known=(PASSPORT,), revision=2) for person in people]
    found = cache.adapter.find(orders)
    full = [replace(o, targets=h.targets) for o, h in zip(orders, found, strict=True)]
    assert cache.adapter.erase(full) == [Erased(erased=3)] * len(people)
    assert cache.adapter.verify(full) == [Seen()] * len(people)
    for call in (cache.adapter.find, cache.adapter.erase, cache.adapter.verify):
        assert list(call([])) == []


def test_cursor_of_another_store_is_refused(cache: Cache) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        cache.adapter.find([cache.order(cursor="7")])


def test_verify_sees_what_the_set_of_keys_does_not_list(cache: Cache) -> None:
    cache.fill(ANNA, "hidden", PASSPORT)
    base = cache.key(ANNA, "").split(":a:")[0]
    cache.raw.delete(f"{base}:keys")
    order = cache.order(known=(PASSPORT,))
    assert cache.found(order) == ()
    assert cache.remaining(order) == 1
    assert cache.remaining(cache.order(kind=SelectorKind.SUBJECT)) == 1
    assert cache.remaining(cache.order(known=(ALLERGY,))) == 0


@pytest.mark.parametrize("kind", ["string", "bare hash"])
def test_verify_counts_what_does_not_say_where_it_belongs(cache: Cache, kind: str) -> None:
    key = cache.key(ANNA, "planted")
    if kind == "string":
        cache.raw.set(key, "an answer")
    else:
        cache.raw.hset(key, "answer", "an answer")
    target = Target(kind="cache_key", id=key, derived_of="fact:f-1@2")
    assert cache.remaining(cache.order(targets=(target,), revision=2)) == 1
    assert cache.remaining(cache.order(kind=SelectorKind.SUBJECT, revision=2)) == 1
    assert cache.remaining(cache.order(NEIGHBOUR, SelectorKind.SUBJECT, revision=2)) == 0


def test_verify_counts_an_entry_once_however_it_was_seen(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT, ALLERGY)
    order = cache.order(kind=SelectorKind.SUBJECT, known=(PASSPORT, ALLERGY))
    assert cache.remaining(replace(order, targets=cache.found(order))) == 1


def test_store_that_says_erased_and_keeps_the_data_is_caught(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    kept = cache.raw.dump(cache.key(ANNA, "q"))
    full = replace(order, targets=cache.found(order))
    cache.adapter.erase([full])
    cache.raw.restore(cache.key(ANNA, "q"), 0, kept)  # type: ignore[arg-type]
    assert cache.remaining(replace(full, known=())) == 1
    assert cache.remaining(replace(full, targets=())) == 1


def test_question_answered_afresh_from_what_stays_is_no_copy(cache: Cache) -> None:
    cache.fill(ANNA, "asked often", PASSPORT, ALLERGY)
    order = cache.order(known=(PASSPORT,), revision=2)
    full = replace(order, targets=cache.found(order))
    cache.adapter.erase([full])
    cache.fill(ANNA, "asked often", ALLERGY, revision=2)
    assert cache.remaining(full) == 0
    cache.fill(ANNA, "asked often", PASSPORT, revision=9)
    assert cache.remaining(full) == 1


def test_late_order_is_not_begun(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), targets=(Target(kind="cache_key", id=cache.key(ANNA, "q")),), revision=9)
    cache.clock.at += timedelta(seconds=61)
    for call in (cache.adapter.find, cache.adapter.erase, cache.adapter.verify):
        with pytest.raises(DeadlinePassed):
            call([order])
    assert cache.answers.get(ANNA, "q") is not None
    assert cache.answers.put(ANNA, "q", "x", [], 1)


@pytest.mark.case(30)
@pytest.mark.parametrize("scope", [ANNA, EVERYWHERE], ids=["project", "user"])
def test_fill_that_began_before_the_erase_is_refused(cache: Cache, scope: Scope) -> None:
    cache.fill(ANNA, "asked before", ALLERGY)
    assert cache.answers.get(ANNA, "Which passport?") is None
    loaded, loaded_under = "P1234567", 1  # an application reads the fact under revision 1, and is slow
    # Meanwhile the source revokes, which raises the revision to 2, and the cache is erased: nothing is there.
    order = cache.order(scope, known=(PASSPORT,), revision=2)
    assert cache.forget(order) == Erased()
    assert not cache.answers.put(ANNA, "Which passport?", loaded, [PASSPORT], loaded_under)
    assert cache.answers.get(ANNA, "Which passport?") is None
    assert cache.remaining(order) == 0
    assert cache.answers.put(ANNA, "Which passport?", "none is known", [ALLERGY], 2)
    assert cache.answers.put(NEIGHBOUR, "Which passport?", "x", [PASSPORT], 1)
    assert cache.remaining(order) == 0


def test_fence_never_sinks_and_a_preview_raises_none(cache: Cache) -> None:
    cache.adapter.erase([cache.order(revision=7)])
    cache.adapter.erase([cache.order(revision=3), cache.order(revision=None)])
    assert not cache.answers.put(ANNA, "q", "x", [], 6)
    assert cache.answers.put(ANNA, "q", "x", [], 7)


def test_source_that_reached_into_another_project_raises_the_fence_there(cache: Cache) -> None:
    cache.fill(ELSEWHERE, "q", PASSPORT)
    assert cache.forget(cache.order(ANNA, SelectorKind.SOURCE, known=(PASSPORT,), revision=2)) == Erased(erased=1)
    assert not cache.answers.put(ELSEWHERE, "q", "x", [PASSPORT], 1)


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
            answers.put(ANNA, "q", "x", [], 1)
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


def test_log_lines_hold_ids_and_counts_alone(cache: Cache) -> None:
    cache.fill(ANNA, "Which passport?", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    with capture_logs() as logs:
        cache.forget(order)
    assert logs == [{"event": "answers.erased", "job_id": str(order.job), "erased": 1, "log_level": "info"}]


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
