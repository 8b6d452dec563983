"""Every mutation fits the source as it is now, so that `make mutants` has something to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import product, provenance
from tests.mutants.mutation import Mutation

ROOT = Path(__file__).parents[2]
MUTATIONS = (*provenance.MUTATIONS, *product.MUTATIONS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.rule for mutation in MUTATIONS])
def test_text_of_a_mutation_stands_once_and_its_tests_exist(mutation: Mutation) -> None:
    for file, old, _ in mutation.changes:
        assert (ROOT / file).read_text(encoding="utf-8").count(old) == 1
    assert mutation.killed_by
    for test in mutation.killed_by:
        place, _, name = test.partition("::")
        assert f"def {name.rpartition('::')[2].partition('[')[0]}(" in (ROOT / place).read_text(encoding="utf-8")


def test_no_rule_is_named_twice() -> None:
    assert len({mutation.rule for mutation in MUTATIONS}) == len(MUTATIONS)
