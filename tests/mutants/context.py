"""One rule of assembled inputs changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "six records go in",
        "adapters/context/budget.py",
        "MAX_RECORDS: Final = 5",
        "MAX_RECORDS: Final = 6",
        "tests/integration/test_context_select.py::test_budget_holds_5_whole_records_of_1500_characters_together[lengths0-within0]",
    ),
    change(
        "1501 characters go in",
        "adapters/context/budget.py",
        "MAX_CHARACTERS: Final = 1_500",
        "MAX_CHARACTERS: Final = 1_501",
        "tests/integration/test_context_select.py::test_budget_holds_5_whole_records_of_1500_characters_together[lengths3-within3]",
    ),
    change(
        "1500 characters do not go in",
        "adapters/context/budget.py",
        "<= MAX_CHARACTERS",
        "< MAX_CHARACTERS",
        "tests/integration/test_context_select.py::test_budget_holds_5_whole_records_of_1500_characters_together[lengths2-within2]",
    ),
    together(
        "a record is not looked at again before it is handed out",
        (
            ("adapters/context/assemble.py", "if now.revisions != selected.revisions:", "if False:"),
            (
                "adapters/context/assemble.py",
                "[record for record in selected.records if record.target in now.targets]",
                "list(selected.records)",
            ),
        ),
        "tests/integration/test_context_assemble.py::test_change_of_what_holds_in_general_begins_the_selection_anew_as_well[sqlite]",
        "tests/integration/test_context_assemble.py::test_record_that_expires_between_rank_and_send_is_absent_and_makes_room[sqlite]",
    ),
    change(
        "what has expired since it was chosen goes in",
        "adapters/context/assemble.py",
        "[record for record in selected.records if record.target in now.targets]",
        "list(selected.records)",
        "tests/integration/test_context_assemble.py::test_record_that_expires_between_rank_and_send_is_absent_and_makes_room[sqlite]",
    ),
    change(
        "memory outranks what the task asks for",
        "adapters/context/assemble.py",
        "free = [record for record in found.records if record.key not in constraints]",
        "free = list(found.records)",
        "tests/integration/test_context_select.py::test_constraint_of_the_task_outranks_memory_of_its_key_and_leaves_it_as_it_is[sqlite]",
    ),
    change(
        "a preference outranks what the task asks for",
        "adapters/context/assemble.py",
        "*(record for record in found.preferences if record.key not in constraints)",
        "*found.preferences",
        "tests/integration/test_context_select.py::test_constraint_of_the_task_outranks_memory_of_its_key_and_leaves_it_as_it_is[sqlite]",
    ),
    change(
        "the gate is not asked before an input",
        "adapters/context/admit.py",
        "    return refusal is None",
        "    return True",
        "tests/integration/test_context_assemble.py::test_what_was_forgotten_goes_in_no_more_though_a_hold_keeps_its_record[sqlite]",
    ),
    change(
        "a name that no eligible record has is not dropped",
        "adapters/context/rank.py",
        "ranked.dropped + len(names.keys() - known.keys())",
        "ranked.dropped",
        "tests/integration/test_context_select.py::test_own_record_is_given_though_foreign_ones_lie_nearer[sqlite]",
    ),
    change(
        "a stored text may end its line",
        "adapters/context/render.py",
        "if c in _MARKUP or not c.isprintable() else c",
        "if c in _MARKUP else c",
        "tests/integration/test_context_render.py::test_no_text_leaves_its_line_or_its_quotes",
    ),
    together(
        "a record is neither looked at again nor held against the gate",
        (
            ("adapters/context/assemble.py", "if now.revisions != selected.revisions:", "if False:"),
            (
                "adapters/context/assemble.py",
                "[record for record in selected.records if record.target in now.targets]",
                "list(selected.records)",
            ),
            ("adapters/context/admit.py", "    return refusal is None", "    return True"),
        ),
        "tests/integration/test_context_assemble.py::test_record_that_is_revoked_between_rank_and_send_is_absent[sqlite]",
    ),
)
