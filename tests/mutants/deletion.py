"""One rule of what a source revokes, erases and restores changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change

MUTATIONS: Final = (
    change(
        "what holds keeps its value after a revocation",
        "adapters/memory/keyed/revoke.py",
        '.values(operation="erased", value=None)',
        '.values(operation="erased")',
        "tests/integration/test_keyed_erase.py::test_revoked_event_answers_as_erased_before_its_row_is_gone[sqlite]",
    ),
    change(
        "what holds is not hidden by a revocation",
        "adapters/memory/keyed/revoke.py",
        """    _IN_FORCE,
)""",
        ")",
        "tests/integration/test_keyed_revoke.py::test_what_is_revoked_is_blank_and_hidden_at_once_and_what_holds_says_erased[sqlite]",
    ),
    change(
        "an erased event leaves no mark",
        "adapters/memory/keyed/erase.py",
        "    insert_new(connection, erased_events, sorted(marks))\n",
        "",
        "tests/integration/test_keyed_erase.py::test_erased_event_leaves_a_keyed_mark_and_no_older_answer_takes_its_place[sqlite]",
    ),
    change(
        "what held by an erased event stays",
        "adapters/memory/keyed/erase.py",
        "    change(connection, _HANDLE, rows, _in_force_no_longer)\n",
        "",
        "tests/integration/test_keyed_erase.py::test_look_sees_what_holds_though_its_event_is_gone[sqlite]",
    ),
    change(
        "candidates are not named by a deletion job",
        "adapters/memory/keyed/revoke.py",
        "for k, t in TABLES.items()})",
        "for k, t in TABLES.items() if k == EVENT})",
        "tests/integration/test_keyed_revoke.py::test_key_names_events_and_candidates_of_exactly_its_scope[sqlite]",
    ),
    change(
        "candidates are left",
        "adapters/memory/keyed/erase.py",
        "    gone |= {(CANDIDATE, handle) for handle in drop_candidates(connection, candidates)}\n",
        "",
        "tests/integration/test_keyed_erase.py::test_erase_takes_exactly_its_handles_of_its_tenant_and_counts_a_repeat_as_absent[sqlite]",
    ),
    change(
        "a revoked text is not blanked",
        "adapters/memory/keyed/revoke.py",
        "        for statement in _BLANK:",
        "        for statement in ():",
        "tests/integration/test_keyed_revoke.py::test_what_is_revoked_is_blank_and_hidden_at_once_and_what_holds_says_erased[sqlite]",
    ),
    change(
        "a candidate of a forgotten confirmation stays",
        "adapters/memory/keyed/named.py",
        "[c.source] if kind == EVENT else [c.source, fact_candidates.c.decided_in]",
        "[c.source]",
        "tests/integration/test_keyed_restore.py::test_candidate_that_was_accepted_in_a_forgotten_message_goes[sqlite]",
    ),
    change(
        "a text is marked though it stands elsewhere",
        "adapters/memory/marking.py",
        "if kind is not SelectorKind.EXPIRED and not (of_source and text_of(row) in stays):",
        "if kind is not SelectorKind.EXPIRED:",
        "tests/integration/test_repointing.py::test_fact_whose_older_source_is_forgotten_stays_as_it_is_and_is_not_marked[sqlite-by_lists]",
        "tests/integration/test_repointing_restored.py::test_restore_leaves_the_fact_by_the_source_that_stays[sqlite-acme/told-first]",
    ),
    change(
        "a fact that stands elsewhere is not put again",
        "adapters/memory/revoke.py",
        "    repoint.put_again(connection, gate, batch.successors)\n",
        "",
        "tests/integration/test_repointing.py::test_fact_whose_newest_source_is_forgotten_holds_by_the_one_before[sqlite-by_lists]",
    ),
    change(
        "what was derived from the forgotten source stands",
        "adapters/memory/repoint.py",
        """        if source in sources.get(tenant, ())
        or not ancestors_of(connection, tenant, source).isdisjoint(sources.get(tenant, ()))
""",
        "        if source in sources.get(tenant, ())\n",
        "tests/integration/test_repointing.py::test_two_that_were_derived_from_another_users_source_do_not_stand_for_each_other[sqlite-by_conditions]",
    ),
    change(
        "what nobody has confirmed stands",
        "adapters/memory/repoint.py",
        'stays = (f.state != "revoked") & (f.confirmed == 1) & unexpired',
        'stays = (f.state != "revoked") & unexpired',
        "tests/integration/test_repointing.py::test_fact_goes_where_nothing_else_stands_for_it[sqlite-by_lists]",
    ),
    change(
        "tombstones are not merged at a restore",
        "adapters/memory/replay.py",
        "        insert_new(connection, source_tombstones, rows)\n",
        "",
        "tests/integration/test_restore.py::test_backup_from_before_the_erasure_brings_nobody_back_who_was_forgotten[sqlite-key]",
    ),
    change(
        "the epoch of the source is not compared",
        "adapters/memory/epoch.py",
        """        if here != self._seen:
            raise StaleSource
""",
        "",
        "tests/integration/test_restore.py::test_copy_that_is_put_back_by_hand_serves_nothing_until_it_was_brought_up_to_date[sqlite]",
    ),
    change(
        "an answer from before a restore is believed",
        "orchestrator/store/commit.py",
        """    same = [a for a in answers if now.get(a.claimed.adapter, epochs.FIRST) == a.claimed.epoch]
    return""",
        """    same = list(answers)
    return""",
        "tests/integration/test_restore.py::test_answer_to_a_call_from_before_the_restore_is_dropped_and_its_job_ends_right[sqlite]",
    ),
    change(
        "numbers of before a restore are given again",
        "adapters/memory/replay.py",
        "    _raise(connection, {tenant for tenant, _ in reach}, base)\n",
        "",
        "tests/integration/test_restore.py::test_numbers_of_a_restored_source_begin_above_all_that_were_given[sqlite]",
    ),
    change(
        "a second job does not name what the first has revoked",
        "adapters/memory/revoke.py",
        "rows = [row for row in named if due.takes(row.fact_id)]",
        'rows = [row for row in named if due.takes(row.fact_id) and row.state != "revoked"]',
        "tests/integration/test_memory_revoke.py::test_a_second_job_on_blank_data_raises_nothing_and_marks_no_text",
    ),
    change(
        "what was renewed expires by an older version",
        "adapters/memory/selection.py",
        "where(same, expired, ~corrected)",
        "where(same, expired)",
        "tests/integration/test_expiry.py::test_every_version_of_a_fact_goes_when_its_newest_has_expired_and_none_before[sqlite]",
    ),
    change(
        "a held item is revoked",
        "adapters/memory/due.py",
        "return item not in self.order.held if self.is_first else item in self.freed",
        "return True",
        "tests/integration/test_memory_holds.py::test_held_item_is_left_byte_identical_and_the_rest_goes[sqlite]",
    ),
    change(
        "the high-water mark is not raised",
        "adapters/memory/erase.py",
        "    _raise_high_water(connection, gate, handles)\n",
        "",
        "tests/integration/test_memory_erase.py::test_versions_are_not_reused_after_erasure",
    ),
    change(
        "an erase takes another tenant's record of the same id",
        "adapters/memory/erase.py",
        "these = sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given))",
        "these = sa.tuple_(f.fact_id, f.version).in_(sa.select(given.c.fact_id, given.c.version))",
        "tests/integration/test_memory_erase.py::test_erase_takes_exact_handles_of_its_tenant",
    ),
    change(
        "a chain that was revoked in the copy comes back",
        "adapters/memory/forgotten.py",
        "if row.revoked or _is_forgotten_chain(",
        "if _is_forgotten_chain(",
        "tests/integration/test_restore.py::test_what_had_expired_and_was_hidden_in_the_copy_goes_although_no_tombstone_matches_it[sqlite]",
    ),
)
