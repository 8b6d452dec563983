"""The suite is tested by adapters that break it: each must fail, by the laws that are named here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from orchestrator.testing import AdapterContract
from tests.contract import mutants
from tests.contract.backups import backups_in
from tests.contract.chained import chains_in
from tests.contract.drafts import drafts_in
from tests.contract.keyed import candidates_in, events_in
from tests.contract.stores import cache_in, memory_in
from tests.contract.vectors import vectors_in

Open: TypeAlias = Callable[[Path], AbstractContextManager[Any]]
ALL_AND_ONLY = "01_takes_all_and_only_its_targets"
BY_SCOPE = "01_a_subject_is_taken_by_its_scope"
EXPIRY = "01_what_has_expired_is_not_the_person"
BATCH = "01_counts_each_order_of_a_batch"
HELD = "01_leaves_what_a_hold_covers"
IDS = "02_ids_are_exact"
VERSION = "02_a_version_is_part_of_what_is_named"
TENANT = "03_another_tenant_looks_like_nothing"
REPEAT = "04_a_repeat_changes_nothing"
PAGES = "05_pages"
UNKNOWN = "06_an_unknown_id_is_nothing_found"
PRESENT = "06_what_is_there_is_never_absent"
DEADLINE = "07_what_is_past_its_deadline_is_not_begun"
UNREACHABLE = "07_an_unreachable_store_is_transient"
LATE = "08_a_late_writer_is_refused_or_found"
LIE = "09_a_lie_is_caught_by_verify"
MADE_FROM = "10_what_was_made_from_copies_goes_too"
MADE_LATE = "10_what_is_made_from_a_copy_later_is_seen"
TOLD_TWICE = "10_what_another_source_told_stays"
FILES = "11_what_is_erased_leaves_the_files"
READER = "11_a_reader_keeps_a_scrub_from_being_clean"
TELLS = "12_nothing_personal_is_told"

# The laws that must catch a mutant; others may catch it too.
CAUGHT_BY: dict[str, set[str]] = {
    "soft delete": {ALL_AND_ONLY, BATCH, PAGES},
    "wipe-everyone": {ALL_AND_ONLY, IDS, PAGES, LATE},
    "prefix delete": {ALL_AND_ONLY, IDS, LATE},
    "partial page": {PAGES},
    "lazy": {ALL_AND_ONLY, BATCH, TENANT, UNKNOWN},
    "zero-match success": {BATCH, TENANT, REPEAT, UNKNOWN},
    "copy under a derived key": {ALL_AND_ONLY, BATCH, IDS, PAGES},
    "copy in another place": {ALL_AND_ONLY, BATCH, PAGES},
    "cache-only": {ALL_AND_ONLY, BATCH, REPEAT, LATE},
    "the whole copy": {ALL_AND_ONLY, BATCH, PAGES},
    "same-path verify": {LIE},
    "swallowed error": {UNREACHABLE},
    "swallowed look": {UNREACHABLE},
    "past its deadline": {DEADLINE},
    "counts the neighbour": {ALL_AND_ONLY, IDS, PAGES},
    "sees the neighbour": {ALL_AND_ONLY, TENANT, REPEAT, LATE},
    "tenant-blind": {TENANT},
    "no fence": {LATE},
    "late writers unseen": {LATE},
    "left over as absent": {PRESENT},
    "takes expiry for the person": {EXPIRY},
    "tells text": {TELLS},
    "logs text": {TELLS},
    "answers with text": {TELLS},
    "ignores the hold": {HELD},
    "keeps everything for one item": {HELD},
    "forgets what it left": {HELD},
    "half a chain": {PAGES},
    "hidden is gone": {LIE},
    "tenant-blind chain": {TENANT},
    "record with text": {ALL_AND_ONLY, BATCH},
    "what holds stays": {ALL_AND_ONLY, BATCH, PAGES},
    "value stays": {ALL_AND_ONLY},
    "mark not written": {ALL_AND_ONLY, BATCH, PAGES},
    "looks at the log alone": {LIE},
    "candidate stays open": {ALL_AND_ONLY},
    "candidates stay": {ALL_AND_ONLY, BATCH, PAGES},
    "origins of nothing": {ALL_AND_ONLY, BATCH, PAGES},
    "text where none belongs": {FILES},
    "takes every version": {VERSION},
    "knows no subject": {BY_SCOPE},
    "takes every project": {BY_SCOPE},
    "follows facts alone": {MADE_FROM},
    "looks from facts alone": {MADE_LATE},
    "takes what says the same": {TOLD_TWICE},
    "scrubs nothing": {FILES},
    "clean while read": {READER},
    "marker not stored": {FILES},
    "marker stays": {FILES},
    "marker of the dead stays": {FILES},
    "keeps the log back": {FILES},
    "keeps the database back": {FILES},
    "names the marker alone": {FILES},
    "keeps the marker back": {FILES},
    "names what is not there": {FILES},
    "scrubs a neighbour away": {FILES},
    "explains it away": {FILES},
    "tells nothing alive": {FILES},
}
# Where other laws than those must catch it: a copy of its own is all that such a delete reaches, and what holds by
# an event is read without it.
IN_STORE: dict[tuple[str, str], set[str]] = {
    ("backup", "prefix delete"): {ALL_AND_ONLY, BATCH},
    ("events", "prefix delete"): {ALL_AND_ONLY, IDS},
    ("events", "wipe-everyone"): {ALL_AND_ONLY, IDS, PAGES},
}
# Each of the many names of law 2 is a job, or a copy, of its own; the other laws catch the same mutants.
NOT_BY_NAMES = {"drafts", "backup"}
# Some laws ask for much: what a mutant breaks of one.
BECAUSE: dict[str, str] = {
    "text where none belongs": "nothing that was erased is found after a scrub",
    "scrubs nothing": "nothing that was erased is found after a scrub",
    "clean while read": "a scrub of a store that somebody reads is busy",
    "marker not stored": "a scan finds the marker that was planted",
    "marker stays": "a marker that was uprooted is not found after a scrub",
    "marker of the dead stays": "a plant takes away the marker of a scan that has died",
    "keeps the log back": "a scan finds the marker that was planted",
    "keeps the database back": "a scan finds the values of all live records",
    "names the marker alone": "a scan finds the values of all live records",
    "keeps the marker back": "a scan finds the marker that was planted",
    "names what is not there": "every file that the store names is there",
    "scrubs a neighbour away": "a scan finds the values of the neighbours after a scrub",
    "explains it away": "the live values are of nothing that was erased",
    "tells nothing alive": "the live values are those of every live record",
    "value stays": "a source hands nothing out after revoke",
    "candidate stays open": "a source hands nothing out after revoke",
    "looks at the log alone": "verify goes by a road of its own and sees what is left",
}
MUTANTS = {
    "memory": mutants.MEMORY,
    "chains": mutants.CHAINS,
    "events": mutants.EVENTS,
    "candidates": mutants.CANDIDATES,
    "cache": mutants.CACHE,
    "vector": mutants.VECTOR,
    "drafts": mutants.DRAFTS,
    "backup": mutants.BACKUP,
}


class Short(AdapterContract):
    sizes = (mutants.LIMIT + 1,)


class Few(AdapterContract):
    sizes = (mutants.FEW + 1,)


@pytest.fixture
def opening(request: pytest.FixtureRequest) -> Open:
    if request.param == "cache":
        return partial(cache_in, url=request.getfixturevalue("fake_url"))
    stores: dict[str, Open] = {
        "memory": memory_in,
        "chains": chains_in,
        "events": events_in,
        "candidates": candidates_in,
        "vector": vectors_in,
        "drafts": drafts_in,
        "backup": backups_in,
    }
    return stores[request.param]


def broken(open_store: Open, folder: Path, laws: set[str], mutate: mutants.Mutation = lambda _: None) -> dict[str, str]:
    """Run laws, each on a store of its own; give the names of those that fail, and what each says."""
    suite = Few if open_store is backups_in else Short
    found = {}
    for name, law in suite.laws().items():
        if name.removeprefix("test_law_") not in laws:
            continue
        with open_store(folder / name) as store:
            store.adapter.max_batch = 20  # what a batch holds changes no law
            mutate(store)
            try:
                law(suite(), store)
            except AssertionError as error:  # of the law or of the store: a mutant that breaks down is not caught
                found[name.removeprefix("test_law_")] = str(error)
    return found


def laws_of(name: str, mutant: str) -> set[str]:
    laws = IN_STORE.get((name, mutant), CAUGHT_BY[mutant])
    return laws - {IDS} if name in NOT_BY_NAMES else laws


@pytest.mark.parametrize(
    ("opening", "name", "mutant"),
    [(name, name, mutant) for name, some in MUTANTS.items() for mutant in some],
    indirect=["opening"],
)
def test_a_mutant_breaks_its_laws(opening: Open, name: str, mutant: str, tmp_path: Path) -> None:
    caught = broken(opening, tmp_path, laws_of(name, mutant), MUTANTS[name][mutant])
    sys.stdout.write(f"{name} | {mutant} | {', '.join(sorted(caught))}\n")
    assert caught.keys() == laws_of(name, mutant)
    assert not [said for said in caught.values() if BECAUSE.get(mutant, "") not in said]


@pytest.mark.parametrize(("opening", "name"), [(name, name) for name in MUTANTS], indirect=["opening"])
def test_the_unmutated_adapter_breaks_none(opening: Open, name: str, tmp_path: Path) -> None:
    assert broken(opening, tmp_path, set().union(*(laws_of(name, mutant) for mutant in MUTANTS[name]))) == {}


def test_every_law_catches_a_mutant_and_every_mutant_is_named() -> None:
    assert set(CAUGHT_BY) == {mutant for some in MUTANTS.values() for mutant in some}
    assert all(laws_of(name, mutant) for name, some in MUTANTS.items() for mutant in some)
    assert all(mutant in MUTANTS[name] and laws != CAUGHT_BY[mutant] for (name, mutant), laws in IN_STORE.items())
    assert set(BECAUSE) >= {mutant for mutant, laws in CAUGHT_BY.items() if laws & {FILES, READER}}
    numbers = {law[:2] for laws in CAUGHT_BY.values() for law in laws}
    assert numbers == {name.removeprefix("test_law_")[:2] for name in Short.laws()}
