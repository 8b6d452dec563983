"""One rule of facts, candidates and sessions changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "a put raises no revision",
        "adapters/memory/facts.py",
        """    raise_revision(connection, [scope])
    return version""",
        "    return version",
        "tests/integration/test_memory_store.py::test_a_put_raises_its_own_scopes_revision",
    ),
    change(
        "a fact is handed out at its expiry",
        "adapters/memory/facts.py",
        "f.expires > now)",
        "f.expires >= now)",
        "tests/integration/test_memory_store.py::test_a_fact_that_expires_now_is_expired",
    ),
    change(
        "what nobody has confirmed is handed out",
        "adapters/memory/facts.py",
        "f.active == 1, f.confirmed == 1,",
        "f.active == 1,",
        "tests/integration/test_memory_store.py::test_current_gives_what_holds_by_key",
    ),
    change(
        "the version that was expected is not compared",
        "adapters/memory/facts.py",
        "        last.expect(expected_version)\n",
        "        pass\n",
        "tests/integration/test_replace.py::test_version_that_was_replaced_meanwhile_is_a_conflict_and_is_not_tried_again[sqlite]",
        "tests/integration/test_replace.py::test_0_says_that_there_is_nothing_of_the_key[sqlite]",
    ),
    change(
        "who expects nothing may undo a revocation",
        "adapters/memory/versions.py",
        "{KeyState.NONE, KeyState.ERASED}",
        "{KeyState.NONE, KeyState.ERASED, KeyState.REVOKED}",
        "tests/integration/test_replace.py::test_caller_that_has_not_heard_of_a_forget_cannot_undo_it[sqlite]",
    ),
    change(
        "a version that was revoked may be replaced",
        "adapters/memory/versions.py",
        "self.state is KeyState.ACTIVE and version == self.version",
        "version == self.version",
        "tests/integration/test_replace.py::test_version_from_before_a_forget_cannot_write[sqlite]",
    ),
    change(
        "a proposal is written as an unconfirmed fact",
        "adapters/memory/candidates/propose.py",
        "    handle = handle_of(gate,",
        """    facts.put(
        connection, gate, scope, key, value, source, expires=expires, confirmed=False, user_statement=False
    )
    handle = handle_of(gate,""",
        "tests/integration/test_candidates_propose.py::test_candidate_is_in_no_fact_and_leaves_the_revision_alone[sqlite]",
        "tests/integration/test_candidates_propose.py::test_extraction_hides_no_confirmed_fact_where_the_low_level_put_would[sqlite]",
    ),
    change(
        "anything confirms a candidate",
        "adapters/memory/candidates/decide.py",
        "if source is not None and not said_in(connection, scope, source):",
        "if False:",
        "tests/integration/test_candidates_decide.py::test_only_a_message_of_the_user_in_this_scope_confirms[sqlite]",
    ),
    change(
        "a decided candidate keeps its value",
        "adapters/memory/candidates/decide.py",
        '"value": None, "decided_at_us"',
        '"decided_at_us"',
        "tests/integration/test_candidates_decide.py::test_message_that_confirms_is_the_source_of_the_new_version_and_stands_in_the_candidate[sqlite]",
        "tests/integration/test_candidates_decide.py::test_rejected_candidate_has_no_value_and_is_accepted_by_nothing[sqlite]",
    ),
    change(
        "the gate is not asked at a proposal",
        "adapters/memory/candidates/propose.py",
        "    pass_gate(connection, gate, scope, key, value, source, user_statement=False)\n",
        "",
        "tests/integration/test_candidates_propose.py::test_what_was_forgotten_is_not_proposed_again[sqlite-key-language-key_tombstoned]",
    ),
    change(
        "the gate is not asked at an acceptance",
        "adapters/memory/candidates/decide.py",
        "    pass_gate(connection, gate, scope, found.key, found.value, found.source, user_statement=False)\n",
        "",
        "tests/integration/test_candidates_decide.py::test_what_was_forgotten_is_not_taken_by_a_late_yes[sqlite-source-user-message-42-source_tombstoned-confirmed]",
    ),
    change(
        "a rule that says nothing lets a candidate in",
        "adapters/memory/candidates/decide.py",
        "found) is not True:",
        "found) is False:",
        "tests/integration/test_candidates_decide.py::test_only_true_is_a_yes_of_a_rule_and_one_that_fails_decides_nothing[sqlite]",
    ),
    change(
        "an acceptance replaces whatever version is there",
        "adapters/memory/candidates/decide.py",
        "        expected_version=expected_version,\n",
        "",
        "tests/integration/test_candidates_decide.py::test_fact_that_was_corrected_meanwhile_is_a_conflict_and_the_candidate_waits_on[sqlite]",
    ),
    change(
        "a candidate is known in every project of its user",
        "adapters/memory/candidates/candidate.py",
        "c.user_id == scope.user, c.project == (scope.project or USER_WIDE)",
        "c.user_id == scope.user",
        "tests/integration/test_candidates_propose.py::test_candidate_of_another_user_project_or_tenant_looks_like_none[sqlite]",
    ),
    change(
        "membership is not asked for",
        "adapters/memory/session.py",
        "if project is not None and self.is_member(project) is not True:",
        "if False:",
        "tests/integration/test_session.py::test_project_of_which_the_person_is_no_member_is_refused_in_the_same_words",
        "tests/integration/test_session.py::test_who_has_left_a_project_reads_writes_and_decides_nothing_in_it[sqlite-current]",
    ),
    together(
        "the user that a request names is believed",
        (
            (
                "adapters/memory/session.py",
                "user=self.user, project=project)",
                "user=user or self.user, project=project)",
            ),
            ("adapters/memory/session.py", "if user is not None and user != self.user:", "if False:"),
        ),
        "tests/integration/test_session.py::test_user_id_of_a_request_gives_no_access[sqlite]",
    ),
    change(
        "anything but False makes a member",
        "adapters/memory/session.py",
        "self.is_member(project) is not True",
        "self.is_member(project) is False",
        "tests/integration/test_session.py::test_only_true_is_a_yes[yes]",
        "tests/integration/test_session.py::test_only_true_is_a_yes[None]",
    ),
    change(
        "the face of a session puts what nobody has confirmed",
        "adapters/memory/session.py",
        "source, expires, user_statement=user_statement)",
        "source, expires, confirmed=False, user_statement=user_statement)",
        "tests/integration/test_session.py::test_face_cannot_write_an_unconfirmed_version_that_hides_a_confirmed_one[sqlite]",
    ),
)
