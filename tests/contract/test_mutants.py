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
from tests.contract.chained import chains_in
from tests.contract.stores import cache_in, memory_in

Open: TypeAlias = Callable[[Path], AbstractContextManager[Any]]
ALL_AND_ONLY = "01_takes_all_and_only_its_targets"
EXPIRY = "01_what_has_expired_is_not_the_person"
BATCH = "01_counts_each_order_of_a_batch"
HELD = "01_leaves_what_a_hold_covers"
IDS = "02_ids_are_exact"
TENANT = "03_another_tenant_looks_like_nothing"
REPEAT = "04_a_repeat_changes_nothing"
PAGES = "05_pages"
UNKNOWN = "06_an_unknown_id_is_nothing_found"
PRESENT = "06_what_is_there_is_never_absent"
UNREACHABLE = "07_an_unreachable_store_is_transient"
LATE = "08_a_late_writer_is_refused_or_found"
LIE = "09_a_lie_is_caught_by_verify"
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
    "cache-only": {ALL_AND_ONLY, BATCH, REPEAT, LATE},
    "same-path verify": {LIE},
    "swallowed error": {UNREACHABLE},
    "swallowed look": {UNREACHABLE},
    "counts the neighbour": {ALL_AND_ONLY, IDS, PAGES},
    "sees the neighbour": {ALL_AND_ONLY, TENANT, REPEAT, LATE},
    "tenant-blind": {TENANT},
    "no fence": {LATE},
    "left over as absent": {PRESENT},
    "takes expiry for the person": {EXPIRY},
    "tells text": {TELLS},
    "ignores the hold": {HELD},
    "keeps everything for one item": {HELD},
    "forgets what it left": {HELD},
    "half a chain": {PAGES},
    "hidden is gone": {LIE},
    "tenant-blind chain": {TENANT},
    "record with text": {ALL_AND_ONLY, BATCH},
    "scrubs nothing": {FILES},
    "clean while read": {READER},
    "marker not stored": {FILES},
    "marker stays": {FILES},
    "marker of the dead stays": {FILES},
    "keeps the log back": {FILES},
    "keeps the database back": {FILES},
    "names what is not there": {FILES},
    "scrubs a neighbour away": {FILES},
    "explains it away": {FILES},
}
# Law 11 asks for much: what a mutant of bytes breaks of it.
BECAUSE: dict[str, str] = {
    "scrubs nothing": "nothing that was erased is found after a scrub",
    "clean while read": "a scrub of a store that somebody reads is busy",
    "marker not stored": "a scan finds the marker that was planted",
    "marker stays": "a marker that was uprooted is not found after a scrub",
    "marker of the dead stays": "a plant takes away the marker of a scan that has died",
    "keeps the log back": "a scan finds the marker that was planted",
    "keeps the database back": "a scan finds the values of all live records",
    "names what is not there": "every file that the store names is there",
    "scrubs a neighbour away": "a scan finds the values of the neighbours after a scrub",
    "explains it away": "the live values are of nothing that was erased",
}
MUTANTS = {"memory": mutants.MEMORY, "chains": mutants.CHAINS, "cache": mutants.CACHE}


class Short(AdapterContract):
    sizes = (mutants.LIMIT + 1,)


@pytest.fixture
def opening(request: pytest.FixtureRequest, fake_url: str) -> Open:
    of_cache: Open = partial(cache_in, url=fake_url)
    return {"memory": memory_in, "chains": chains_in, "cache": of_cache}[request.param]


def broken(open_store: Open, folder: Path, laws: set[str], mutate: mutants.Mutation = lambda _: None) -> dict[str, str]:
    """Run laws, each on a store of its own; give the names of those that fail, and what each says."""
    found = {}
    for name, law in Short.laws().items():
        if name.removeprefix("test_law_") not in laws:
            continue
        with open_store(folder / name) as store:
            store.adapter.max_batch = 20  # what a batch holds changes no law
            mutate(store)
            try:
                law(Short(), store)
            except Exception as error:  # noqa: BLE001 - a law fails by whatever it raises
                found[name.removeprefix("test_law_")] = str(error)
    return found


@pytest.mark.parametrize(
    ("opening", "name", "mutant"),
    [(name, name, mutant) for name, some in MUTANTS.items() for mutant in some],
    indirect=["opening"],
)
def test_a_mutant_breaks_its_laws(opening: Open, name: str, mutant: str, tmp_path: Path) -> None:
    caught = broken(opening, tmp_path, CAUGHT_BY[mutant], MUTANTS[name][mutant])
    sys.stdout.write(f"{name} | {mutant} | {', '.join(sorted(caught))}\n")
    assert caught.keys() == CAUGHT_BY[mutant]
    assert not [said for said in caught.values() if BECAUSE.get(mutant, "") not in said]


@pytest.mark.parametrize("opening", MUTANTS, indirect=True)
def test_the_unmutated_adapter_breaks_none(opening: Open, tmp_path: Path) -> None:
    assert broken(opening, tmp_path, {name.removeprefix("test_law_") for name in Short.laws()}) == {}


def test_every_law_catches_a_mutant_and_every_mutant_is_named() -> None:
    assert set(CAUGHT_BY) == {mutant for some in MUTANTS.values() for mutant in some}
    assert all(CAUGHT_BY.values())
    assert set(BECAUSE) == {mutant for mutant, laws in CAUGHT_BY.items() if laws & {FILES, READER}}
    numbers = {law[:2] for laws in CAUGHT_BY.values() for law in laws}
    assert numbers == {name.removeprefix("test_law_")[:2] for name in Short.laws()}
