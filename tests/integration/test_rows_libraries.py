"""Every library of an application works under a role that is bound, and no adapter of a worker does in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
import structlog

from adapters.context import Assembler, Ranked, Record
from adapters.drafts import Answer, DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from adapters.memory.session import Session
from adapters.memory.statements import Reach
from adapters.vector import Point, VectorAdapter
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Permanent, Scope, Selector, SelectorKind, Target
from tests.fakes import FakeClock
from tests.integration.approvals_harness import FileTool
from tests.integration.rows_harness import application, as_role, bind, owned, with_all_tables
from tests.postgres import Server, new_database

A = Scope(tenant="tenant-a", user="user-1", project="agent-research")
B = replace(A, tenant="tenant-b")
PLACES = ("sqlite", "postgresql", "role")


class Stores(NamedTuple):
    """The stores of one application, all of them opened under the same role."""

    memory: MemoryAdapter
    drafts: DraftsAdapter
    vector: VectorAdapter


class Base(NamedTuple):
    """A database of PostgreSQL with every table, by the URLs of its owner and of a role that is bound."""

    owner: str
    role: str


@pytest.fixture(scope="module")
def base(postgres_server: Server) -> Base:
    url = new_database(postgres_server)
    owner, role = owned(url), application(url)
    with_all_tables(url, owner)
    bind(owner, role)
    return Base(owner, as_role(owner, role))


def opened(folder: Path, memory: str, vector: str) -> Iterator[Stores]:
    log = structlog.get_logger()
    context = AdapterContext(clock=FakeClock(), gate=Gate(Keyring.create()), log=log, state_dir=folder)
    stores = Stores(
        MemoryAdapter(context, url=memory),
        DraftsAdapter(context, url=memory),
        VectorAdapter(context, url=vector, dimensions=3),
    )
    with closing(stores.memory), closing(stores.drafts), closing(stores.vector):
        yield stores


@pytest.fixture
def stores(base: Base, tmp_path: Path) -> Iterator[Stores]:
    """Give the stores under the role."""
    yield from opened(tmp_path, base.role, base.role)


def everything(records: Sequence[Record]) -> Ranked:
    return Ranked(order=tuple(record.target for record in records))


def facts_of(stores: Stores, scope: Scope) -> Any:  # noqa: ANN401 - whatever it was told
    store, statements, candidates = stores.memory.store, stores.memory.statements, stores.memory.candidates
    for name in ("turn-1", "turn-2", "turn-3"):
        store.register_source(scope, name)
    store.register_source(scope, "summary-1", kind="model", derived_from=["turn-1"])
    told: list[object] = [store.put(scope, "language", "zh-CN", "turn-1", user_statement=True)]
    told.append(store.replace(scope, "language", "en", "turn-2", expected_version=1))
    first = candidates.propose(scope, "seat", "aisle", "turn-3", proposed_by="extractor")
    second = candidates.propose(scope, "meal", "vegan", "turn-3", proposed_by="extractor")
    told.append(len(candidates.pending(scope)))
    told.append(candidates.accept(scope, first.id, source="turn-3", expected_version=0))
    candidates.reject(scope, second.id)
    told.append(statements.take(scope, "tone", "short", "turn-2", reach=Reach.PROJECT).key)
    told.append(store.forget(scope, "tone").outcome)
    return told, [(fact.key, fact.value) for fact in store.current(scope)], store.revision_for_answers(scope)


def preferences_of(stores: Stores, scope: Scope) -> Any:  # noqa: ANN401 - as above
    log = stores.memory.preferences
    log.prefer(scope, "detail", "brief", "turn-1")
    event = log.record(scope, "detail", None, "turn-2")
    log.apply(scope, event.sequence)
    return log.resolve(scope, "detail").state, log.replay(scope), log.state(scope, "detail").operation


def chains_of(stores: Stores, scope: Scope) -> Any:  # noqa: ANN401 - as above
    chains, task = stores.memory.chains, TaskScope(scope.user, str(scope.project), scope.tenant)
    first = chains.remember(task, "task", "Eats neither nuts nor meat.", "turn-1")
    second = chains.correct(task, first, "Eats fish, but no nuts.", "turn-2")
    assert [version.id for version in chains.history(task, first)] == [first, second]
    record = Target(kind="memory", id=str(first), version=second)
    return [m.text for m in chains.recall(task, "Which nuts?")], [
        *stores.memory.masters.active(scope, [record]).values()
    ]


def points_of(stores: Stores, scope: Scope) -> Any:  # noqa: ANN401 - as above
    index = stores.vector.index(stores.memory.masters)
    made = [Target(kind="fact", id=fact.id, version=fact.version) for fact in stores.memory.store.current(scope)]
    points = [Point(made_from=target, source="turn-2", vector=[1.0, n, 0.5]) for n, target in enumerate(made)]
    for _ in range(2):
        assert index.put(scope, points).refused == 0
    return len(index.search(scope, [1.0, 0.0, 0.5]).hits), index.dropped


def drafts_of(stores: Stores, scope: Scope) -> Any:  # noqa: ANN401 - as above
    runtime, tool = stores.drafts.runtime, FileTool(stores.memory._context.state_dir / scope.tenant)
    assert runtime.submit(scope, "report-1").job == "report-1"
    report = runtime.run(scope, "report-1").report
    runtime.submit(scope, "report-2", redo="report-1", steps={})
    cancelled = runtime.cancel(scope, "report-2")
    assert report is not None
    approvals, gateway = stores.drafts.approvals(lambda _: True), stores.drafts.gateway(tool, lambda _: True)
    approvals.request(scope, "mail-1", "send-mail", report="report-1")
    approvals.decide(scope, "mail-1", Answer.APPROVE)
    receipt = gateway.dispatch(scope, "mail-1", stores.memory.store.revision(scope))
    approvals.request(scope, "mail-2", "send-mail", report="report-1")
    approvals.cancel(scope, "mail-2")
    session = Session(tenant=scope.tenant, user=scope.user, is_member=lambda _: True)
    inputs = Assembler(stores.drafts, session).assemble("turn-9", everything, project=scope.project)
    current = stores.drafts.masters.active(scope, [report.target])
    told = approvals.receipt(scope, receipt.operation_key).receipt, [view.state for view in approvals.list(scope)]
    return report.text, cancelled.outstanding, told, [item.text for item in inputs.items], [*current.values()]


LIBRARIES: Mapping[str, Callable[[Stores, Scope], Any]] = {
    "facts": facts_of,
    "preferences": preferences_of,
    "chains": chains_of,
    "points": points_of,
    "drafts": drafts_of,
}


@pytest.mark.req("R6")
@pytest.mark.req("R4")
def test_every_library_tells_the_same_on_both_databases_and_under_the_role(base: Base, tmp_path: Path) -> None:
    told = {}
    for place in PLACES:
        folder = tmp_path / place
        folder.mkdir()
        urls = [f"sqlite:///{folder / name}" for name in ("m.db", "v.db")]
        if place != "sqlite":
            urls = [base.role if place == "role" else base.owner] * 2
        for stores in opened(folder, *urls):
            # The same ids and texts of two tenants: neither finds anything of the other's.
            scopes = [replace(scope, tenant=f"{scope.tenant}-{place}") for scope in (A, B)]
            told[place] = [{name: use(stores, scope) for name, use in LIBRARIES.items()} for scope in scopes]
            assert told[place][0] == told[place][1]
    assert told["postgresql"] == told["sqlite"]
    assert told["role"] == told["postgresql"]


KINDS = (SelectorKind.KEY, SelectorKind.MEMORY, SelectorKind.SOURCE, SelectorKind.SUBJECT, SelectorKind.EXPIRED)


@pytest.mark.req("R6")
@pytest.mark.parametrize("kind", KINDS)
def test_worker_that_opens_a_store_under_the_role_calls_nothing_clean(stores: Stores, kind: SelectorKind) -> None:
    store, clock = stores.memory.store, stores.memory._context.clock
    scope = replace(A, user=f"user-{kind.value}")
    store.register_source(scope, f"turn-{kind.value}")
    store.put(scope, "passport", "P1234567", f"turn-{kind.value}")
    value = None if kind in {SelectorKind.SUBJECT, SelectorKind.EXPIRED} else "passport"
    targets = (Target(kind="fact", id=store.current(scope)[0].id, version=1),)
    order = EraseOrder(
        job=uuid4(),
        unit=uuid4(),
        key="k",
        scope=scope,
        selector=Selector(kind=kind, value=value),
        known=targets,
        targets=targets,
        deadline=clock.now() + timedelta(seconds=20),
    )
    for adapter in stores:
        for verb in ("find", "verify"):
            with pytest.raises(Permanent, match="expunge memory grant"):
                getattr(adapter, verb)([order])
    for call in (stores.memory.revoke, stores.memory.erase):
        with pytest.raises(Permanent, match="expunge memory grant"):
            call([order])
    assert [fact.value for fact in store.current(scope)] == ["P1234567"]
