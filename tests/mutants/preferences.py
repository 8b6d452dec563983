"""One rule of the preference log changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change

MUTATIONS: Final = (
    change(
        "an event of the same sequence is applied again",
        "adapters/memory/preferences/state.py",
        "WHERE excluded.sequence > preferences.sequence",
        "WHERE excluded.sequence >= preferences.sequence",
        "tests/integration/test_preferences_order.py::test_second_delivery_changes_nothing_and_is_told_from_a_first[sqlite]",
    ),
    change(
        "a late event is applied over a newer one",
        "adapters/memory/preferences/state.py",
        "    WHERE excluded.sequence > preferences.sequence\n",
        "",
        "tests/integration/test_preferences_order.py::test_completions_end_as_the_scenarios_say[sqlite-S2]",
        "tests/integration/test_preferences_order.py::test_completions_end_as_the_scenarios_say[sqlite-S4]",
    ),
    change(
        "delete markers are skipped",
        "adapters/memory/preferences/event.py",
        "_E.key == key, _E.sequence <= as_of)",
        '_E.key == key, _E.sequence <= as_of, _E.operation != "delete")',
        "tests/integration/test_preferences_resolve.py::test_ten_look_ups_answer_as_stated[sqlite-L8]",
        "tests/integration/test_preferences_resolve.py::test_reader_that_skips_delete_markers_would_revive_an_old_value[sqlite]",
    ),
    change(
        "what holds in general comes before what holds in a project",
        "adapters/memory/preferences/resolve.py",
        """    if scope.project is None or own.state in {State.VALUE, State.ERASED}:
        return own
    general = _of_exactly(connection, gate, replace(scope, project=None), key, as_of)
""",
        """    general = _of_exactly(connection, gate, replace(scope, project=None), key, as_of)
    if scope.project is None or general.state is State.UNSET:
        return own
""",
        "tests/integration/test_preferences_resolve.py::test_ten_look_ups_answer_as_stated[sqlite-L3]",
    ),
    change(
        "an event at the sequence that is asked for is left out",
        "adapters/memory/preferences/event.py",
        "_E.sequence <= as_of",
        "_E.sequence < as_of",
        "tests/integration/test_preferences_resolve.py::test_sequence_equal_to_as_of_is_included[sqlite]",
    ),
    change(
        "an erased event lets the one before it answer",
        "adapters/memory/preferences/resolve.py",
        "event.sequence > erased",
        "event.sequence",
        "tests/integration/test_preferences_erased.py::test_erasing_an_event_changes_no_earlier_answer_into_another_value[sqlite-erase]",
    ),
    change(
        "a late event is applied over one that was erased",
        "adapters/memory/preferences/state.py",
        """      AND NOT EXISTS (
        SELECT 1 FROM erased_events m WHERE m.tenant = :tenant AND m.key_mac = :key_mac AND m.sequence >= :sequence
      )
""",
        "",
        "tests/integration/test_preferences_erased.py::test_late_event_is_not_applied_over_one_that_was_erased[sqlite-erase]",
    ),
)
