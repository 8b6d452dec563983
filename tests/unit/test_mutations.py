"""Every mutation fits the source as it is now, so that `make mutants` has something to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutation import Mutation
from tests.mutants.run import MUTATIONS, ROOT, SUBJECTS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.rule for mutation in MUTATIONS])
def test_text_of_a_mutation_stands_once_and_its_tests_exist(mutation: Mutation) -> None:
    for file, old, new in mutation.changes:
        assert (ROOT / file).read_text(encoding="utf-8").count(old) == 1
        assert old != new
    assert mutation.killed_by
    for test in mutation.killed_by:
        place, _, name = test.partition("::")
        assert f"def {name.rpartition('::')[2].partition('[')[0]}(" in (ROOT / place).read_text(encoding="utf-8")


def test_no_rule_is_named_twice() -> None:
    assert len({mutation.rule for mutation in MUTATIONS}) == len(MUTATIONS)


def test_every_file_of_mutations_is_read() -> None:
    files = {file.stem for file in (ROOT / "tests" / "mutants").glob("*.py")} - {"mutation", "run"}
    assert files == {Path(str(subject.__file__)).stem for subject in SUBJECTS}
