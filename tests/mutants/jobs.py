"""One rule of deletion jobs changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "an adapter's word is trusted",
        "orchestrator/service/advance.py",
        """    if job.seen_present:
        return [NewRound(_names(stores))]
""",
        "",
        "tests/unit/test_service.py::test_what_follows_for_a_job[job13-actions13]",
        "tests/integration/test_engine_receipts.py::test_lying_store_is_caught_and_opens_new_rounds_until_it_parks",
    ),
    together(
        "a job is completed although a window is open",
        (
            (
                "orchestrator/service/advance.py",
                "[] if job.open_windows else [Move(JobState.COMPLETED)]",
                "[Move(JobState.COMPLETED)]",
            ),
            (
                "orchestrator/service/advance.py",
                "done if job.open_windows else [*done, Move(JobState.COMPLETED)]",
                "[*done, Move(JobState.COMPLETED)]",
            ),
        ),
        "tests/unit/test_service.py::test_what_follows_for_a_job[job15-actions15]",
        "tests/unit/test_service.py::test_what_follows_for_a_job[job16-actions16]",
        "tests/integration/test_windows.py::test_open_window_holds_the_job_in_verified_until_its_copy_is_seen_to_be_gone[sqlite]",
    ),
    change(
        "a look is opened while something is being erased",
        "orchestrator/service/advance.py",
        """    if _unfinished(job, Phase.ERASE, required) or _unfinished(job, Phase.REVOKE, required):
        return []
""",
        "",
        "tests/unit/test_service.py::test_what_follows_for_a_job[job10-actions10]",
    ),
    change(
        "a job is verified before every look has answered",
        "orchestrator/service/advance.py",
        """    if _unfinished(job, Phase.VERIFY, required):
        return []
""",
        "",
        "tests/unit/test_service.py::test_what_follows_for_a_job[job12-actions12]",
        "tests/integration/test_engine_receipts.py::test_lying_store_is_caught_and_opens_new_rounds_until_it_parks",
    ),
    change(
        "no pass looks for what was made from what was found",
        "orchestrator/service/advance.py",
        """    if job.found_in_last_pass:
        return [OpenFind(last + 1, _names(stores))]
    # A store""",
        "    # A store",
        "tests/unit/test_service.py::test_what_follows_for_a_job[job4-actions4]",
        "tests/integration/test_closure.py::test_late_artefact_of_an_artefact_is_seen_by_the_last_look_and_goes_in_the_next_round",
    ),
    change(
        "a look does not wait for the quiet time",
        "orchestrator/store/advance.py",
        "pause = rules.quiet_time // timedelta(microseconds=1)",
        "pause = 0",
        "tests/integration/test_engine_order.py::test_verify_is_not_due_before_quiet_time_has_passed_since_the_last_erase",
    ),
    change(
        "a hold is ignored at the claim",
        "orchestrator/store/units.py",
        "(_j.state.not_in(_ENDED) & ~waits_for_hold())",
        "_j.state.not_in(_ENDED)",
        "tests/integration/test_holds.py::test_nothing_of_a_freed_item_is_erased_before_its_source_has_revoked_it[sqlite]",
    ),
    change(
        "a hold that came after the claim is ignored",
        "orchestrator/store/orders.py",
        "if r.user_id is None or not held[r.job_id].isdisjoint((None, r.item_ref))}",
        "if r.user_id is None}",
        "tests/integration/test_holds.py::test_worker_that_finds_a_hold_after_its_claim_calls_nothing",
    ),
    change(
        "a hold is in force while a lost call may still act",
        "orchestrator/store/holds.py",
        "(_u.status == t.RUNNING) | (_u.deadline_us > now_us)",
        "_u.status == t.RUNNING",
        "tests/integration/test_holds.py::test_hold_is_placing_until_no_call_that_began_before_can_act[sqlite]",
    ),
    change(
        "a revoke that was claimed may be cancelled",
        "orchestrator/store/intervene.py",
        """    if connection.execute(begun).scalar_one():
        raise RuleRefused(Refusal.ALREADY_BEGUN)
""",
        "",
        "tests/integration/test_steer.py::test_cancel_is_refused_once_a_revoke_was_claimed[sqlite-in_requested_with_a_claim-requested]",
    ),
    change(
        "counts that do not add up become a receipt",
        "orchestrator/service/judge.py",
        """    if remaining > scheduled:
        raise Transient(code=ErrorCode.PARTIAL)
""",
        "",
        "tests/unit/test_service.py::test_answer_that_is_no_end_is_never_a_receipt[erase-answer0-Transient-partial]",
    ),
    change(
        "a window closes though its copy is there",
        "orchestrator/service/judge.py",
        """    if answer.remaining:
        raise Transient(code=ErrorCode.STILL_PRESENT)
""",
        "",
        "tests/integration/test_windows.py::test_copy_that_is_still_there_after_its_end_is_asked_for_again_and_never_parked[sqlite]",
    ),
    together(
        "a window is asked about before its end",
        (
            ("orchestrator/store/windows.py", '    _ENDED.c.until_us <= sa.bindparam("now"),\n', ""),
            (
                "orchestrator/store/windows.py",
                'where(_w.closed_at_us.is_(None), _w.until_us <= sa.bindparam("now"))',
                "where(_w.closed_at_us.is_(None))",
            ),
        ),
        "tests/integration/test_windows.py::test_open_window_holds_the_job_in_verified_until_its_copy_is_seen_to_be_gone[sqlite]",
    ),
    change(
        "who slept past the lease of a scrub is believed",
        "orchestrator/service/look.py",
        "return told if kept else unclear",
        "return told",
        "tests/unit/test_service_look.py::test_who_slept_past_the_lease_of_its_scrub_claims_nothing",
    ),
    change(
        "a scan that saw no marker is believed",
        "orchestrator/scan/report.py",
        "if not self.control_found or any(",
        "if any(",
        "tests/unit/test_service_look.py::test_each_sight_says_no_more_than_was_seen[scanner4-False-expected4]",
        "tests/unit/test_scan_scanner.py::test_scan_of_nothing_is_clean_only_beside_a_control",
    ),
    change(
        "a scrub whose lease has ended is finished",
        "orchestrator/store/scrubs.py",
        """    # A lease that has ended is no lease, even where nobody has come by yet.
    fail_ended(connection)
""",
        "",
        "tests/integration/test_scrub_lease.py::test_scrub_that_is_told_after_its_lease_has_ended_is_failed",
    ),
    together(
        "a late answer is written whoever holds the unit by now",
        (
            (
                "orchestrator/store/commit.py",
                '_u.status == t.RUNNING, _u.lease_owner == sa.bindparam("owner"))',
                "_u.status == t.RUNNING)",
            ),
            (
                "orchestrator/store/commit.py",
                "[a for a in same if held.get(a.claimed.order.key) == a.claimed.order.fence]",
                "[a for a in same if a.claimed.order.key in held]",
            ),
        ),
        "tests/integration/test_engine_claims.py::test_stale_commit_is_dropped_while_another_worker_holds_the_unit",
    ),
    together(
        "holds are read neither at the claim nor before the call",
        (
            ("orchestrator/store/units.py", "(_j.state.not_in(_ENDED) & ~waits_for_hold())", "_j.state.not_in(_ENDED)"),
            (
                "orchestrator/store/orders.py",
                "if r.user_id is None or not held[r.job_id].isdisjoint((None, r.item_ref))}",
                "if r.user_id is None}",
            ),
        ),
        "tests/integration/test_holds.py::test_hold_on_a_subject_keeps_every_phase_from_changing_anything[sqlite]",
        "tests/integration/test_holds.py::test_hold_on_one_item_keeps_the_item_and_what_was_made_from_it_and_nothing_else[sqlite]",
    ),
)
