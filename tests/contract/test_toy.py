"""The notes of the page for adapter authors: under the contract, and what the page says of them beyond it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from orchestrator import (
    Erased,
    InvalidRequest,
    Permanent,
    Residual,
    Scope,
    Selector,
    SelectorKind,
    StorageAdapter,
    StoreLocked,
    StoreUnreachable,
    Target,
)
from orchestrator.testing import AdapterContract, Erasure, Record, StoreUnderTest
from tests.contract.stores import Lines, context_in, notes_in
from tests.contract.toy import NotesUnderTest

SCOPE = Scope(tenant="t-1", user="s-1", project="p-1")
PASSPORT, NEIGHBOUR = (
    Record(
        scope=scope,
        key="passport",
        text=f"of {scope.user}",
        source="turn",
        fact=Target(kind="fact", id="f-1", version=1),
    )
    for scope in (SCOPE, replace(SCOPE, user="s-2"))
)


class TestNotes(AdapterContract):
    sizes = (1001,)  # every call reads the whole file

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with notes_in(tmp_path / "notes") as store:
            yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[NotesUnderTest]:
    with notes_in(tmp_path) as store:
        yield store


class Died(BaseException):
    """The process has died."""


def erasure_of(adapter: StorageAdapter) -> Erasure:
    by_key = Selector(kind=SelectorKind.KEY, value="passport")
    return Erasure(adapter=adapter, scope=SCOPE, selector=by_key, known=(PASSPORT.fact,))


def test_crash_between_the_two_files_is_put_right_by_the_same_order(
    store: NotesUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.plant_all([PASSPORT, NEIGHBOUR])
    notes, erasure = store.adapter.store, erasure_of(store.adapter)
    order, write = erasure.order(targets=erasure.find()), notes.write

    def dies(name: str, rows: Sequence[Any]) -> None:
        if name == "origins":
            raise Died
        write(name, rows)

    with monkeypatch.context() as crash:
        crash.setattr(notes, "write", dies)
        with pytest.raises(Died):
            store.adapter.erase([order])
    assert (len(notes.read("notes")), len(notes.read("origins"))) == (1, 2)
    assert store.adapter.erase([order]) == [Erased(already_absent=1)]
    assert (len(notes.read("notes")), len(notes.read("origins"))) == (1, 1)
    assert store.readable(NEIGHBOUR)


def test_writer_that_dies_half_way_leaves_no_note_that_find_cannot_see(
    store: NotesUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, write = store.adapter.store, store.adapter.store.write

    def dies(name: str, rows: Sequence[Any]) -> None:
        if name == "notes":
            raise Died
        write(name, rows)

    with monkeypatch.context() as crash:
        crash.setattr(notes, "write", dies)
        with pytest.raises(Died):
            store.plant(PASSPORT)
    assert (len(notes.read("notes")), len(notes.read("origins"))) == (0, 1)
    outcome = erasure_of(store.adapter).run()
    assert (outcome.erased, outcome.already_absent, outcome.remaining) == (0, 1, 0)
    assert notes.read("origins") == []


def test_erase_does_not_come_between_the_files_of_another_writer(store: NotesUnderTest) -> None:
    store.plant(PASSPORT)
    erasure, before = erasure_of(store.adapter), store.raw()
    targets = erasure.find()
    with store.adapter.store.locked(), pytest.raises(StoreLocked):
        erasure.erase(targets)
    assert store.raw() == before
    assert erasure.erase(targets) == [Erased(erased=1, residuals=frozenset({Residual.FILE_SYSTEM}))]


def test_find_names_the_record_that_a_hold_would_keep_and_counts_what_names_none(store: NotesUnderTest) -> None:
    scope = asdict(SCOPE)
    of_two = {**scope, "text": "a", "made_from": ["fact:f-0@1", "fact:f-1@1"]}
    of_none = {"text": "b", "made_from": []}
    store.adapter.store.add(of_two, {**scope, **of_none}, {**scope, **of_none, "user": "s-2"})
    erasure = erasure_of(store.adapter)
    (holding,) = store.adapter.find([erasure.order(known=erasure.known)])
    assert [target.derived_of for target in holding.targets] == ["fact:f-1@1"]
    assert holding.no_lineage == 1
    (whole,) = store.adapter.find([erasure.order(selector=Selector(kind=SelectorKind.SUBJECT))])
    assert (len(whole.targets), whole.no_lineage) == (2, 0)


def test_note_of_another_version_of_a_fact_stays(store: NotesUnderTest) -> None:
    corrected = replace(PASSPORT, text="corrected", fact=replace(PASSPORT.fact, version=2))
    store.plant_all([PASSPORT, corrected])
    outcome = erasure_of(store.adapter).run()
    assert (outcome.erased, outcome.remaining) == (1, 0)
    assert (store.readable(PASSPORT), store.readable(corrected)) == (False, True)


def test_store_that_is_not_there_is_not_made_by_its_adapter(tmp_path: Path, store: NotesUnderTest) -> None:
    adapter = type(store.adapter)(context_in(tmp_path / "elsewhere", Lines()))
    with pytest.raises(StoreUnreachable):
        erasure_of(adapter).find()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_broken_line_is_a_permanent_error_that_quotes_nothing(tmp_path: Path, store: NotesUnderTest) -> None:
    (tmp_path / "notes" / "origins.jsonl").write_text('{"text": "P1234567')
    with pytest.raises(Permanent) as error:
        erasure_of(store.adapter).find()
    assert "P1234567" not in "".join(format_exception(error.value))


@pytest.mark.parametrize("options", [{"folder": 1}, {"path": "x"}, {"folder": "x", "url": "y"}])
def test_option_that_is_none_is_refused(options: dict[str, object], tmp_path: Path, store: NotesUnderTest) -> None:
    with pytest.raises(InvalidRequest, match="takes one option: folder"):
        type(store.adapter)(context_in(tmp_path, Lines()), **options)
