"""Every way into a store, tried with what was forgotten: told again, imported, summarised, indexed, put back.

Each row is one way in. It is refused for the person of whom something was forgotten, for the reason that is written
beside it, and taken for a neighbour who has told the same: so nothing else refuses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import pytest

from adapters.backup import BackupAdapter
from adapters.cache.cache import AnswerCache
from adapters.drafts import DraftRuntime, MemoryChanged, ReportUnusable
from adapters.memory import Candidates, MemoryAdapter, MemoryStore, PreferenceLog, Reach, Statements
from adapters.memory.chains import SourceChains
from adapters.vector import VectorIndex
from orchestrator import GateRefused, Refusal, SelectorKind
from tests.integration.five_stores import TURN_6, Five
from tests.integration.write_paths_harness import (
    KEY,
    MEMORY,
    SOURCE,
    SUBJECT,
    Open,
    Teller,
    answers_url,
    forgotten,
    prepared,
)

__all__ = ["answers_url", "forgotten", "prepared"]


class Row(NamedTuple):
    """A way in after something was forgotten. `through` is the call that the gate stands in."""

    way: str
    forgotten: SelectorKind
    through: Callable[..., Any]
    write: Callable[[Teller], bool]
    refused: object  # the reason of the gate, the error, or False where it is told as not taken


REGISTER, PUT = MemoryStore.register_source, MemoryStore.put
REPLACE, PROPOSE, TAKE = MemoryStore.replace, Candidates.propose, Statements.take
REMEMBER, CORRECT = SourceChains.remember, SourceChains.correct
RECORD, PREFER = PreferenceLog.record, PreferenceLog.prefer
SUBMIT, RUN = DraftRuntime.submit, DraftRuntime.run
INDEX, FILL, RESTORE = VectorIndex.put, AnswerCache.put, MemoryAdapter.restore
OF_SOURCE, OF_KEY, OF_TEXT = Refusal.SOURCE_TOMBSTONED, Refusal.KEY_TOMBSTONED, Refusal.TEXT_TOMBSTONED
OF_TOKEN = Refusal.TOKEN_TOMBSTONED
ROWS: Final = (
    # An old transcript is read again.
    Row("the message again", SOURCE, REGISTER, lambda t: t.new(TURN_6) == t.told, OF_SOURCE),
    Row("extraction", SOURCE, PUT, lambda t: t.put(t.told), OF_SOURCE),
    Row("extraction", KEY, PUT, lambda t: t.put(t.told), OF_KEY),
    Row("extraction", SUBJECT, PUT, lambda t: t.put(t.told), OF_SOURCE),
    Row("extraction in other words", KEY, PUT, lambda t: t.put(t.told, t.words, "document"), OF_TOKEN),
    Row("extraction in other words", MEMORY, PUT, lambda t: t.put(t.told, t.words, "document"), OF_TOKEN),
    Row("candidate", KEY, PUT, lambda t: t.put(t.told, confirmed=False), OF_KEY),
    Row("replacement", SOURCE, REPLACE, lambda t: t.replace(t.told), OF_SOURCE),
    Row("replacement", KEY, REPLACE, lambda t: t.replace(t.told), OF_KEY),
    Row("replacement in other words", KEY, REPLACE, lambda t: t.replace(t.told, t.words, "document"), OF_TOKEN),
    Row("proposal", SOURCE, PROPOSE, lambda t: t.propose(t.told), OF_SOURCE),
    Row("proposal", KEY, PROPOSE, lambda t: t.propose(t.told), OF_KEY),
    Row("proposal", MEMORY, PROPOSE, lambda t: t.propose(t.told, t.words, "document"), OF_TOKEN),
    Row("proposal of an import", KEY, PROPOSE, lambda t: t.propose(t.exported()), OF_TEXT),
    Row("statement", SOURCE, TAKE, lambda t: t.state(t.told), OF_SOURCE),
    Row("statement", KEY, TAKE, lambda t: t.state(t.told), OF_KEY),
    Row("statement for once", SUBJECT, TAKE, lambda t: t.state(t.told, Reach.TASK), OF_SOURCE),
    Row("preference", SOURCE, RECORD, lambda t: t.records(t.told), OF_SOURCE),
    Row("preference", KEY, RECORD, lambda t: t.records(t.told), OF_KEY),
    Row("preference", SUBJECT, PREFER, lambda t: t.prefers(t.told), OF_SOURCE),
    Row("preference", KEY, PREFER, lambda t: t.prefers(t.exported()), OF_TEXT),
    Row("memory", SOURCE, REMEMBER, lambda t: t.remember(t.told), OF_SOURCE),
    Row("memory", SUBJECT, REMEMBER, lambda t: t.remember(t.told, level="user"), OF_SOURCE),
    Row("memory", MEMORY, REMEMBER, lambda t: t.remember(t.told, level="user"), OF_TOKEN),
    Row("memory of a fact", KEY, REMEMBER, lambda t: t.remember(t.told, t.words), OF_TOKEN),
    Row("correction", SOURCE, CORRECT, lambda t: t.correct(t.told), OF_SOURCE),
    Row("correction", MEMORY, CORRECT, lambda t: t.correct(t.told), OF_TOKEN),
    Row("correction by a fact", KEY, CORRECT, lambda t: t.correct(t.told, t.words), OF_TOKEN),
    # An export that was made before is imported.
    Row("import", SOURCE, PUT, lambda t: t.put(t.exported()), OF_TEXT),
    Row("import", KEY, PUT, lambda t: t.put(t.exported()), OF_TEXT),
    Row("import as a statement", KEY, PUT, lambda t: t.put(t.exported(), user_statement=True), OF_TEXT),
    Row("import under another key", MEMORY, PUT, lambda t: t.put(t.exported(), key="document"), OF_TEXT),
    Row("import with its origin", SOURCE, REGISTER, lambda t: t.exported(t.told) != "", OF_SOURCE),
    Row("import with its origin", SUBJECT, REGISTER, lambda t: t.exported(t.told) != "", OF_SOURCE),
    Row("import with its origin", KEY, PUT, lambda t: t.put(t.exported(t.told), t.words, "document"), OF_TOKEN),
    Row("memory of an import", MEMORY, REMEMBER, lambda t: t.remember(t.exported()), OF_TEXT),
    Row("correction by an import", MEMORY, CORRECT, lambda t: t.correct(t.exported()), OF_TEXT),
    # What is known is summarised, reflected upon, and promoted.
    Row("summary", SOURCE, REGISTER, lambda t: t.summarised() != "", OF_SOURCE),
    Row("summary", SUBJECT, REGISTER, lambda t: t.summarised() != "", OF_SOURCE),
    Row("fact of a summary", KEY, PUT, lambda t: t.put(t.summarised(), t.words, "document"), OF_TOKEN),
    Row("fact of an old summary", SOURCE, PUT, lambda t: t.put(t.name("summary-8"), t.words), OF_SOURCE),
    Row("memory of a summary", KEY, REMEMBER, lambda t: t.remember(t.summarised(), t.words), OF_TOKEN),
    Row("memory of a summary", MEMORY, REMEMBER, lambda t: t.remember(t.summarised(), t.words), OF_TOKEN),
    Row("correction by a summary", MEMORY, CORRECT, lambda t: t.correct(t.summarised(), t.words), OF_TOKEN),
    Row("report on another fact", KEY, RUN, lambda t: t.writes(t.words), OF_TOKEN),
    Row("report that was begun", SOURCE, RUN, lambda t: t.goes_on("begun"), MemoryChanged),
    Row("report that was submitted", KEY, RUN, lambda t: t.goes_on("waiting"), MemoryChanged),
    Row("report on a report", KEY, SUBMIT, lambda t: t.builds_upon("published"), ReportUnusable),
    # What was made from a record is kept elsewhere.
    Row("point", SOURCE, INDEX, Teller.enter, False),
    Row("point", KEY, INDEX, Teller.enter, False),
    Row("point", SUBJECT, INDEX, Teller.enter, False),
    Row("answer", SOURCE, FILL, Teller.fill, False),
    Row("answer", KEY, FILL, Teller.fill, False),
    Row("answer", SUBJECT, FILL, Teller.fill, False),
    # A database of before takes the place of today's.
    Row("restore", SOURCE, RESTORE, Teller.put_back, False),
    Row("restore", SUBJECT, RESTORE, Teller.put_back, False),
)
PASSING: Final = (
    Row("another fact of the message", KEY, PUT, lambda t: t.put(t.told, "quiet rooms", "hotel"), True),
    Row("another fact of the message", MEMORY, PUT, lambda t: t.put(t.told, "quiet rooms", "hotel"), True),
    Row("replacement by a new message", KEY, REPLACE, lambda t: t.replace(t.new("turn-9"), "none any more"), True),
    Row("proposal of another fact", KEY, PROPOSE, lambda t: t.propose(t.told, "quiet rooms", "hotel"), True),
    Row("statement of a new message", KEY, TAKE, lambda t: t.state(t.new("turn-9")), True),
    Row("another memory of the message", KEY, REMEMBER, lambda t: t.remember(t.told, "Likes quiet rooms."), True),
    Row("another memory of the message", MEMORY, REMEMBER, lambda t: t.remember(t.told, "Likes quiet rooms."), True),
    Row("another fact of a summary", KEY, PUT, lambda t: t.put(t.summarised(), "quiet rooms", "hotel"), True),
    Row(
        "another memory of an import", MEMORY, REMEMBER, lambda t: t.remember(t.exported(), "Likes quiet rooms."), True
    ),
    Row("correction that says nothing of it", KEY, CORRECT, lambda t: t.correct(t.told, "Eats fish."), True),
    Row("report on another fact", KEY, RUN, lambda t: t.writes("likes quiet rooms"), True),
    Row("another message", SOURCE, PUT, lambda t: t.put(t.name("turn-7"), "quiet rooms", "hotel"), True),
    Row("another message", SUBJECT, PUT, lambda t: t.put(t.new("turn-9"), "quiet rooms", "hotel"), True),
    # What nothing tells from something new.
    Row("import without its origin", SUBJECT, PUT, lambda t: t.put(t.exported()), True),
    Row("memory of an import of a fact", KEY, REMEMBER, lambda t: t.remember(t.exported()), True),
)
READS: Final = {
    MemoryStore: {"knows_source", "current", "revision", "revision_for_answers"},
    Candidates: {"pending", "inspect", "under"},
    Statements: {"reach_of"},
    PreferenceLog: {"resolve", "state", "apply", "replay"},  # the last two move what the log holds already
    SourceChains: {"history", "recall", "deletions"},
    DraftRuntime: {"inspect"},
    VectorIndex: {"search"},
    AnswerCache: {"get"},
}
OF_JOBS: Final = {"revoke", "find", "erase", "verify", "expired", "closed", "scrub"}
OF_SCANS: Final = {"live_files", "live_values", "plant", "uproot"}
"""A marker is of the scan, and no text of anybody."""
TAKES_AWAY: Final = {(MemoryStore, "forget"), (Candidates, "reject"), (DraftRuntime, "cancel")}
DECIDES: Final = {(Candidates, "accept")}
"""What was proposed before: `test_candidates_decide.py` tries each kind of forgetting."""
COPIES_AS_IT_IS: Final = {(BackupAdapter, "take")}
"""A copy holds what its source holds; one that is taken while a job runs is seen by the look of the job."""


def tried(row: Row, teller: Teller) -> object:
    try:
        return row.write(teller)
    except GateRefused as error:
        return error.refusal
    except (MemoryChanged, ReportUnusable) as error:
        return type(error)


def ids(rows: Collection[Row]) -> list[str]:
    return [f"{row.forgotten} forgotten-{row.way}" for row in rows]


@pytest.mark.req("R150")
@pytest.mark.case(26)
@pytest.mark.parametrize("row", ROWS, ids=ids(ROWS))
def test_what_was_forgotten_comes_in_by_no_way(forgotten: Open, row: Row) -> None:
    anna, berta = forgotten(row.forgotten)
    assert tried(row, anna) == row.refused
    assert tried(row, berta) is True, "a neighbour who has told the same may write it"
    assert anna.text not in repr(everything(anna.five, "anna"))


@pytest.mark.req("R148")
@pytest.mark.case(26)
@pytest.mark.parametrize("row", PASSING, ids=ids(PASSING))
def test_what_is_new_comes_in_by_the_same_ways(forgotten: Open, row: Row) -> None:
    anna, _ = forgotten(row.forgotten)
    assert tried(row, anna) is True


def everything(five: Five, user: str) -> list[object]:
    """Read all that the source database holds in any table that names a user."""
    tables = five.rows(
        "SELECT m.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c ON c.name = 'user_id'"
    )
    return [five.rows(f"SELECT * FROM {table} WHERE user_id = ?", user) for (table,) in tables]  # noqa: S608 - ours


@pytest.mark.req("R150")
def test_every_way_in_has_its_row() -> None:
    """A method that is new in a library of a store is a way in until somebody says what it is."""
    ways = {(row.through.__qualname__) for row in ROWS}
    for library, reads in {**READS, MemoryAdapter: set[str](), BackupAdapter: {"copies", "unseen", "path_of"}}.items():
        for name, method in inspect.getmembers(library, inspect.isfunction):
            of_engine = name in OF_JOBS | OF_SCANS and library in {MemoryAdapter, BackupAdapter}
            if name.startswith("_") or name in reads | {"close"} or of_engine:
                continue
            known = {(library, name)} & (TAKES_AWAY | DECIDES | COPIES_AS_IT_IS)
            assert known or method.__qualname__ in ways, f"{method.__qualname__} has no row"
