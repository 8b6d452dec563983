"""One rule of the provenance store changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCENARIO: Final = "test_chains_scenario.py::test_replay_equals_the_recording_byte_for_byte"


@dataclass(frozen=True)
class Mutation:
    """A rule that is changed: a text that stands exactly once in a file of the store, and what it becomes.

    `killed_by` names the tests of `tests/integration` that fail then, all of them.
    """

    rule: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]


def change(rule: str, file: str, old: str, new: str, *killed_by: str) -> Mutation:
    """Write a mutation down in the order in which it is read."""
    return Mutation(rule, file, old, new, killed_by)


STORE: Final = Path("adapters/memory/chains")
TESTS: Final = Path("tests/integration")
MUTATIONS: Final = (
    change(
        "secure_delete is always off",
        "file.py",
        '"secure_delete": int(secure_delete),',
        '"secure_delete": 0,',
        "test_chains_residue.py::test_secure_delete_is_on_by_default",
        _SCENARIO,
    ),
    change(
        "secure_delete is not set",
        "file.py",
        '        "secure_delete": int(secure_delete),\n',
        "",
        "test_chains_residue.py::test_text_stays_in_the_file_with_secure_delete_off",
        _SCENARIO,
    ),
    change(
        "secure_delete is off by default",
        "store.py",
        "secure_delete: bool = True",
        "secure_delete: bool = False",
        "test_chains_residue.py::test_secure_delete_is_on_by_default",
    ),
    change(
        "what was corrected is recalled",
        "reading.py",
        "visible(scope).where(CORRECTED_BY.is_(None))",
        "visible(scope)",
        "test_chains_corrections.py::test_correction_replaces_in_recall_and_both_stay_in_history[file]",
        _SCENARIO,
    ),
    change(
        "recall at the exact expiry",
        "recall.py",
        "not is_expired(row.expires_at, now)",
        "row.expires_at == now or not is_expired(row.expires_at, now)",
        "test_chains_expiry.py::test_recall_stops_at_the_exact_expiry[file]",
    ),
    change(
        "no purge at the exact expiry",
        "delete.py",
        "if is_expired(row.expires_at, now)",
        "if row.expires_at != now and is_expired(row.expires_at, now)",
        "test_chains_expiry.py::test_purge_acts_at_the_exact_expiry[file]",
    ),
    change(
        "purge takes the newest version only",
        "delete.py",
        "chain_of(connection, readable(), memory_id)",
        "chain_of(connection, readable(), memory_id)[-1:]",
        "test_chains_expiry.py::test_purge_removes_the_whole_chain[file]",
    ),
    change(
        "purge takes any expired version",
        "delete.py",
        "m.expires_at.is_not(None), CORRECTED_BY.is_(None)",
        "m.expires_at.is_not(None)",
        "test_chains_expiry.py::test_newest_decides_whether_a_chain_is_purged[file]",
    ),
    change(
        "forget takes one version",
        "delete.py",
        "chain = chain_of(connection, visible(scope), memory_id)",
        "chain = chain_of(connection, visible(scope), memory_id)[-1:]",
        "test_chains_forget.py::test_forget_by_any_id_deletes_all_versions_and_leaves_a_record_without_text[file-0]",
    ),
    change(
        "no explicit BEGIN",
        "file.py",
        '    sa.event.listen(engine, "begin", begin)\n',
        "",
        "test_chains_files.py::test_migration_that_fails_midway_leaves_version_1[4]",
    ),
    change(
        "old versions may be corrected",
        "write.py",
        "if old.corrected_by is not None:",
        "if False:",
        "test_chains_corrections.py::test_only_the_newest_can_be_corrected[file]",
    ),
    change(
        "the scope ignores the user",
        "visible.py",
        "        m.user_id == scope.user,\n",
        "",
        "test_chains_corrections.py::test_foreign_and_missing_look_the_same[file]",
    ),
    change(
        "foreign keys are off",
        "file.py",
        '"foreign_keys": 1,',
        '"foreign_keys": 0,',
        "test_chains_files.py::test_file_of_version_1_migrates_with_data_sources_ids_and_foreign_keys",
        "test_chains_residue.py::test_every_connection_of_a_pool_of_5_has_secure_delete_and_foreign_keys[file]",
    ),
    change(
        "a bool is a number of days",
        "inputs.py",
        "return type(value) is int",
        "return isinstance(value, int)",
        "test_chains_inputs.py::test_invalid_input_is_refused_before_writing[file]",
    ),
    change(
        "no record of a deletion",
        "delete.py",
        "    _record(connection, chain[-1], ids, reason, now)\n",
        "",
        "test_chains_forget.py::test_forget_by_any_id_deletes_all_versions_and_leaves_a_record_without_text[file-0]",
        _SCENARIO,
    ),
    change(
        "records of every user are told",
        "delete.py",
        "t.tenant == scope.tenant, d.user_id == scope.user",
        "t.tenant == scope.tenant",
        "test_chains_forget.py::test_forget_by_any_id_deletes_all_versions_and_leaves_a_record_without_text[file-0]",
    ),
    change(
        "recall takes a reading of the clock",
        "reading.py",
        "        now = self._clock.peek()\n        with reading",
        "        now = self._clock.now()\n        with reading",
        "test_chains_scenario.py::test_recall_and_purge_take_no_reading_of_the_clock[file]",
        _SCENARIO,
    ),
    change(
        "purge takes a reading of the clock",
        "store.py",
        "now, removed, failed = self._clock.peek()",
        "now, removed, failed = self._clock.now()",
        "test_chains_scenario.py::test_recall_and_purge_take_no_reading_of_the_clock[file]",
        _SCENARIO,
    ),
    change(
        "the scope ignores the task",
        "visible.py",
        "        sa.or_(m.task_id.is_(None), m.task_id == scope.task),\n",
        "",
        "test_chains_scopes.py::test_task_memories_are_invisible_from_other_tasks_and_user_memories_are_not[file]",
    ),
    change(
        "a correction loses its level",
        "write.py",
        "_insert(connection, scope, old.task_id,",
        "_insert(connection, scope, None,",
        "test_chains_corrections.py::test_correction_keeps_its_level[file]",
    ),
    change(
        "equal scores put the oldest first",
        "recall.py",
        "(-memory.score, -memory.id)",
        "(-memory.score, memory.id)",
        "test_chains_scopes.py::test_equal_scores_put_the_newest_first[file]",
    ),
    change(
        "the scope ignores the tenant",
        "visible.py",
        "        t.tenant == scope.tenant,\n",
        "",
        "test_chains_scopes.py::test_users_and_tenants_stay_apart_in_every_read[file]",
    ),
    change(
        "what is revoked is read",
        "visible.py",
        ".where(t.revoked == 0)",
        "",
        "test_chains_scopes.py::test_what_is_revoked_is_read_by_nobody_and_left_to_its_job[file]",
    ),
    change(
        "a refused correction takes a reading of the clock",
        "write.py",
        "    old = connection.execute(",
        "    clock.now()\n    old = connection.execute(",
        "test_chains_inputs.py::test_rejected_call_takes_no_reading_of_the_clock[file]",
    ),
    change(
        "ids are used again",
        "tables.py",
        "    sqlite_autoincrement=True,  #",
        "    #",
        "test_chains_forget.py::test_ids_are_never_reused[file]",
    ),
    change(
        "forget does not keep writers out while it reads",
        "store.py",
        """        with writing(self._engine, [scope.tenant]) as connection:
            ids = delete.forget(""",
        """        with reading(self._engine) as connection:
            ids = delete.forget(""",
        "test_chains_concurrent.py::test_forget_keeps_writers_out_from_its_reading_to_its_end[file]",
    ),
    change(
        "purge does not look again before it deletes",
        "delete.py",
        "if not expired(connection, now, only=memory_id):",
        "if False:",
        "test_chains_concurrent.py::test_chain_that_is_corrected_after_it_was_seen_to_be_due_stays_and_others_go[file]",
    ),
    change(
        "purge ends with the first chain that cannot be deleted",
        "store.py",
        "                failed.append(error)",
        "                raise error",
        "test_chains_concurrent.py::test_chain_that_cannot_be_deleted_keeps_no_other_user_from_being_purged[file]",
    ),
    change(
        "settings are not read back",
        "../sqlite.py",
        'if driver.execute(f"PRAGMA {name}").fetchone() != (value,):',
        "if False:",
        "test_chains_residue.py::test_connection_that_does_not_keep_a_setting_is_not_used",
    ),
    change(
        "the log is not emptied after a forget",
        "store.py",
        "        checkpoint(self._engine)\n        return ids",
        "        return ids",
        "test_chains_residue.py::test_forgetting_and_purging_empty_the_log_by_themselves[file]",
    ),
    change(
        "an offset is not reckoned with",
        "tables.py",
        "return found.astimezone(UTC)",
        "return found.replace(tzinfo=UTC)",
        "test_chains_expiry.py::test_expiry_compares_instants_whatever_their_offset[file-2026-10-27T11:01:00+02:00]",
    ),
    change(
        "a file of version 2 is opened unseen",
        "schema.py",
        "== _known((*VERSION_1, *MIGRATION))",
        "!= {}",
        "test_chains_files.py::test_unknown_file_is_refused_and_left_as_it_is[statements6-version 2]",
    ),
    change(
        "an old file is not cleaned",
        "file.py",
        "            _clean(engine)\n",
        "            pass\n",
        "test_chains_files.py::test_old_file_is_cleaned_of_what_was_deleted_before_it_came[version-1]",
    ),
)
