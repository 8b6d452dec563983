"""The mutations of the chains fit the source as it is now, so that `make mutants` has something to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.provenance import MUTATIONS, STORE, TESTS, Mutation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.rule for mutation in MUTATIONS])
def test_text_of_a_mutation_stands_once_and_its_tests_exist(mutation: Mutation) -> None:
    assert (ROOT / STORE / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.killed_by
    for test in mutation.killed_by:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / TESTS / file).read_text(encoding="utf-8")


def test_no_rule_is_named_twice() -> None:
    assert len({mutation.rule for mutation in MUTATIONS}) == len(MUTATIONS)
