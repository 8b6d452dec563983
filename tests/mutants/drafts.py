"""One rule of draft jobs and approvals changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "the revision of a draft job is not compared",
        "adapters/drafts/validity.py",
        "job.memory_rev == revision and (job.memory_expires is None or job.memory_expires > now)",
        "job.memory_expires is None or job.memory_expires > now",
        "tests/integration/test_drafts_runtime.py::test_recovery_that_reads_no_memory_is_checked_all_the_same",
        "tests/integration/test_drafts_runtime.py::test_any_change_of_the_scope_ends_a_job_and_one_elsewhere_does_not[sqlite]",
    ),
    change(
        "the expiry of a draft job is not compared",
        "adapters/drafts/validity.py",
        "job.memory_rev == revision and (job.memory_expires is None or job.memory_expires > now)",
        "job.memory_rev == revision",
        "tests/integration/test_drafts_runtime.py::test_expiry_alone_ends_a_job_at_equality[None]",
        "tests/integration/test_approvals.py::test_expiry_alone_voids_it_at_equality[sqlite]",
    ),
    change(
        "a draft job goes on at its expiry",
        "adapters/drafts/validity.py",
        "job.memory_expires > now",
        "job.memory_expires >= now",
        "tests/integration/test_drafts_runtime.py::test_expiry_alone_ends_a_job_at_equality[None]",
    ),
    change(
        "a step is kept without a check",
        "adapters/drafts/runtime.py",
        "            self._while_valid(claim, keep)\n",
        """            with writing(self._engine, [claim.scope.tenant]) as connection:
                keep(connection, lease.owned(connection, claim))
""",
        "tests/integration/test_drafts_runtime.py::test_revocation_before_any_transaction_of_a_run_is_seen_by_that_one[sqlite-5]",
    ),
    change(
        "a step is begun without a check",
        "adapters/drafts/runtime.py",
        "        text = work.do(step, self._while_valid(claim, begin), writer)\n",
        """        with writing(self._engine, [claim.scope.tenant]) as connection:
            given = begin(connection, lease.owned(connection, claim))
        text = work.do(step, given, writer)
""",
        "tests/integration/test_drafts_crash.py::test_revocation_after_a_death_at_any_place_stops_the_report[after_collect]",
    ),
    change(
        "an overtaken runner goes on",
        "adapters/drafts/lease.py",
        "if job.lease_owner != claim.owner:",
        "if False:",
        "tests/integration/test_drafts_crash.py::test_runner_that_was_overtaken_keeps_nothing[sqlite-in the draft]",
    ),
    change(
        "a lease is claimed only after its end",
        "adapters/drafts/lease.py",
        "job.lease_until_us > now_us",
        "job.lease_until_us >= now_us",
        "tests/integration/test_drafts_runtime.py::test_lease_keeps_a_second_runner_out_until_it_ends",
    ),
    change(
        "what the steps depend on is not compared",
        "adapters/drafts/dependencies.py",
        "return step in before and step in now and before[step] == now[step]",
        "return True",
        "tests/integration/test_drafts_redo.py::test_fact_that_the_draft_alone_used_has_draft_and_report_redone_and_the_collected_kept[sqlite]",
        "tests/integration/test_drafts_redo.py::test_fact_that_was_collected_has_all_redone[correct]",
    ),
    change(
        "a step of which nothing was said depends on nothing",
        "adapters/drafts/dependencies.py",
        "return step in before and step in now and before[step] == now[step]",
        "return before.get(step) == now.get(step)",
        "tests/integration/test_drafts_redo.py::test_step_of_which_nothing_was_said_depends_on_the_whole_scope[None]",
        "tests/integration/test_drafts_redo.py::test_draft_of_which_nothing_was_said_is_redone_behind_what_was_collected",
    ),
    change(
        "what is taken over passes no gate",
        "adapters/drafts/redo.py",
        "if row.step != Step.COLLECT.value:",
        "if False:",
        "tests/integration/test_drafts_redo.py::test_draft_that_says_what_was_forgotten_since_is_not_taken_over",
    ),
    change(
        "an approval is not checked when it is decided",
        "adapters/drafts/approvals/library.py",
        "holds = row.state not in _WAITING or payload is not None",
        "holds = True",
        "tests/integration/test_approvals.py::test_change_of_the_memory_while_it_waits_voids_it_for_good[sqlite-forget-approve]",
        "tests/integration/test_approvals.py::test_lost_membership_refuses_the_decision_and_every_reading[sqlite]",
    ),
    change(
        "the digest does not bind the revision",
        "adapters/drafts/approvals/description.py",
        "payload, str(memory_rev), expires)",
        "payload, expires)",
        "tests/integration/test_approvals.py::test_digest_changes_with_the_revision_and_with_the_expiry",
    ),
    change(
        "the digest does not bind the expiry",
        "adapters/drafts/approvals/description.py",
        "str(memory_rev), expires)",
        "str(memory_rev))",
        "tests/integration/test_approvals.py::test_digest_changes_with_the_revision_and_with_the_expiry",
    ),
    change(
        "membership is not asked for when it is decided or sent",
        "adapters/drafts/approvals/validity.py",
        "if not admits(is_member, scope) or not is_current(",
        "if not is_current(",
        "tests/integration/test_approvals.py::test_session_that_has_lost_its_project_decides_nothing_in_it",
        "tests/integration/test_gateway.py::test_it_is_checked_again_before_it_is_sent[sqlite-leave]",
    ),
    together(
        "an approval is not checked before it is sent",
        (
            (
                "adapters/drafts/approvals/gateway.py",
                "from adapters.drafts.tables import approvals\n",
                "from adapters.drafts.tables import approvals, drafts\n",
            ),
            (
                "adapters/drafts/approvals/gateway.py",
                "        payload = payload_of(connection, gate, scope, row, now=at, is_member=self._is_member)\n",
                "        payload = connection.scalar(sa.select(drafts.c.text).where(drafts.c.job == row.handle))\n",
            ),
        ),
        "tests/integration/test_gateway.py::test_it_is_checked_again_before_it_is_sent[sqlite-forget]",
        "tests/integration/test_gateway.py::test_it_is_checked_again_before_it_is_sent[sqlite-expire]",
    ),
    change(
        "an older epoch is sent",
        "adapters/drafts/approvals/gateway.py",
        "stale = revision != revision_of(connection, scope)",
        "stale = False",
        "tests/integration/test_gateway.py::test_dispatch_that_was_prepared_under_an_older_epoch_is_refused[sqlite]",
    ),
    change(
        "a receipt is not given after a revocation",
        "adapters/drafts/approvals/gateway.py",
        """        if row.receipt is not None:
            return _Marked""",
        """        if row.receipt is not None and revision == revision_of(connection, scope):
            return _Marked""",
        "tests/integration/test_approvals_cancel.py::test_action_that_waits_is_cancelled_and_one_that_was_sent_is_outstanding[sqlite]",
    ),
    change(
        "the tool is not asked before it is called",
        "adapters/drafts/approvals/gateway.py",
        """        if done is not None:
            return done
""",
        "",
        "tests/integration/test_gateway_crash.py::test_whoever_comes_after_a_death_sends_what_was_not_sent_and_nothing_twice[sqlite-after_call]",
    ),
    together(
        "what has a receipt is sent once more",
        (
            (
                "adapters/drafts/approvals/gateway.py",
                """        if row.receipt is not None:
            return _Marked(row=row, payload=None)
""",
                "",
            ),
            (
                "adapters/drafts/approvals/gateway.py",
                """        if done is not None:
            return done
""",
                "",
            ),
        ),
        "tests/integration/test_gateway.py::test_approved_action_is_sent_once_with_its_payload_and_key[sqlite]",
    ),
    change(
        "an action is sent by two at once",
        "adapters/drafts/approvals/gateway.py",
        "            raise DispatchRunning\n",
        "            pass\n",
        "tests/integration/test_gateway.py::test_second_dispatch_waits_for_the_lease_of_the_first_and_ends_by_its_receipt",
    ),
    change(
        "what nobody has approved is sent",
        "adapters/drafts/approvals/gateway.py",
        "    ApprovalState.PENDING: ApprovalPending,\n",
        "",
        "tests/integration/test_gateway.py::test_nothing_is_sent_that_nobody_has_approved",
    ),
    together(
        "the look-up of a receipt asks for the revision",
        (
            (
                "adapters/drafts/approvals/view.py",
                "from adapters.memory.facts import check_text, place_of\n",
                "from adapters.memory.facts import check_text, place_of, revision\n",
            ),
            (
                "adapters/drafts/approvals/view.py",
                ".where(here, a.operation_key == operation_key)",
                """.where(
        here, a.operation_key == operation_key, a.memory_rev == revision(connection, scope)
    )""",
            ),
        ),
        "tests/integration/test_gateway.py::test_receipt_is_the_same_after_a_revocation_and_reads_nothing_else[sqlite]",
    ),
    together(
        "the look-up of a receipt reads the memory",
        (
            (
                "adapters/drafts/approvals/view.py",
                "from adapters.memory.facts import check_text, place_of\n",
                "from adapters.memory.facts import check_text, current, place_of\n",
            ),
            (
                "adapters/drafts/approvals/view.py",
                "    row = connection.execute(query).one_or_none()\n",
                """    current(connection, scope, 0.0)
    row = connection.execute(query).one_or_none()
""",
            ),
        ),
        "tests/integration/test_gateway.py::test_receipt_is_the_same_after_a_revocation_and_reads_nothing_else[sqlite]",
    ),
)
