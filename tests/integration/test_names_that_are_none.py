"""Names that nothing can have are refused as such on both databases, and not as a store that is to be tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import structlog

from adapters.context import Assembler, Ranked
from adapters.drafts import Answer, DraftsAdapter, Step
from adapters.memory import MemoryAdapter, Session
from orchestrator import AdapterContext, Gate, InvalidRequest, Keyring, Scope
from tests.fakes import FakeClock

A: Final = Scope(tenant="tenant-a", user="user-1", project="agent-research")
NO_NAMES: Final[tuple[Any, ...]] = (5, "a\0b", "\ud800", " ")
CALLS: Final[dict[str, Callable[[MemoryAdapter, DraftsAdapter, Any], object]]] = {
    "candidate": lambda memory, _, name: memory.candidates.inspect(A, name),
    "accepted": lambda memory, _, name: memory.candidates.accept(A, name, source="turn-1", expected_version=0),
    "rejected": lambda memory, _, name: memory.candidates.reject(A, name),
    "page": lambda memory, _, name: memory.candidates.pending(A, after=name),
    "job": lambda _, drafts, name: drafts.runtime.inspect(A, name),
    "run": lambda _, drafts, name: drafts.runtime.run(A, name),
    "redone": lambda _, drafts, name: drafts.runtime.submit(A, "new", steps={Step.DRAFT: ["language"]}, redo=name),
    "cancelled": lambda _, drafts, name: drafts.runtime.cancel(A, name),
    "report": lambda _, drafts, name: drafts.approvals(_yes).request(A, "mail-1", "send-mail", report=name),
    "decided": lambda _, drafts, name: drafts.approvals(_yes).decide(A, name, Answer.APPROVE),
    "approval": lambda _, drafts, name: drafts.approvals(_yes).cancel(A, name),
    "receipt": lambda _, drafts, name: drafts.approvals(_yes).receipt(A, name),
}


def _yes(_scope: Scope) -> bool:
    return True


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[MemoryAdapter, DraftsAdapter]]:
    """Give both adapters over one database with one fact."""
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path)
    with closing(MemoryAdapter(context, url=url)) as memory, closing(DraftsAdapter(context, url=url)) as drafts:
        memory.store.register_source(A, "turn-1")
        memory.store.put(A, "language", "zh-CN", "turn-1")
        yield memory, drafts


def test_what_can_be_no_name_is_refused_before_the_database_is_asked(
    stores: tuple[MemoryAdapter, DraftsAdapter],
) -> None:
    others = {(call, name): _refusal(partial(CALLS[call], *stores, name)) for call in CALLS for name in NO_NAMES}
    assert set(others.values()) == {InvalidRequest}, others
    assert [fact.value for fact in stores[0].store.current(A)] == ["zh-CN"]


def test_preferences_are_asked_for_by_several_keys_and_not_by_the_letters_of_one(
    stores: tuple[MemoryAdapter, DraftsAdapter],
) -> None:
    assembler = Assembler(stores[1], Session(tenant=A.tenant, user=A.user, is_member=lambda _: True))
    wrong: tuple[Any, ...] = ("tone", None)
    for preferences in wrong:
        with pytest.raises(InvalidRequest):
            assembler.assemble("turn-2", lambda _: Ranked(), project=A.project, preferences=preferences)
    # A key of one letter is one key.
    assert assembler.assemble("turn-3", lambda _: Ranked(), project=A.project, preferences=["t"]).items == ()


def _refusal(act: Callable[[], object]) -> type[Exception] | None:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - which one it is is asked by the test
        return type(error)
    return None
