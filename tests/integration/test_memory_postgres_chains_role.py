"""What memories with their corrections promise of the gate holds under a role that is bound; jobs are the owner's."""

from __future__ import annotations

from tests.integration.memory_chains_harness import source_in
from tests.integration.test_memory_chains_gate import (  # noqa: F401 - run again, under the role
    test_each_write_raises_the_revision_of_what_it_concerns_alone,
    test_forgetting_a_memory_marks_texts_and_tokens_and_no_source,
    test_forgetting_a_source_refuses_it_whole_and_the_texts_of_its_chains,
    test_forgetting_a_subject_refuses_what_was_accepted_before,
    test_gate_compares_memories_with_what_facts_have_lost,
    test_memory_of_a_source_that_was_never_accepted_is_refused,
    test_only_a_fresh_statement_of_the_user_brings_a_text_back_and_once,
    test_statement_of_no_task_confirms_what_is_kept_for_the_user_alone,
    test_text_that_was_forgotten_at_one_level_is_refused_at_both,
)

source = source_in("role")
