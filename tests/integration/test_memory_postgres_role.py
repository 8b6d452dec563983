"""What the memory store promises on a SQLite file holds on PostgreSQL, too, and there under a role that is bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adapters.memory import MemoryStore
from orchestrator import Gate, Keyring
from tests.integration.memory_harness import world_in
from tests.integration.rows_harness import emptied, opened
from tests.integration.test_memory_store import (  # noqa: F401 - run again, with the fixtures of this file
    At,
    test_a_fact_that_expires_now_is_expired,
    test_a_project_does_not_inherit_from_one_with_the_same_prefix,
    test_a_put_raises_its_own_scopes_revision,
    test_a_source_that_is_anothers_or_other_is_refused_in_the_same_words,
    test_a_value_has_at_most_2000_characters,
    test_an_unconfirmed_put_makes_a_confirmed_fact_vanish,
    test_an_unknown_ancestor_or_source_is_refused,
    test_another_tenants_same_text_is_not_read,
    test_current_gives_what_holds_by_key,
    test_forget_raises_the_revision_from_two_to_three,
    test_registering_a_source_again_changes_nothing,
    test_scopes_that_join_to_one_text_share_no_rows,
    test_two_projects_of_one_user_stay_apart,
    test_versions_are_not_reused_after_forget,
)
from tests.integration.test_memory_suppression import (  # noqa: F401 - as above
    test_a_revoked_source_and_what_derives_from_it_recreate_nothing,
    test_only_a_fresh_statement_of_the_user_brings_a_text_back_and_once,
    test_other_sources_keys_and_users_pass,
    test_the_tombstone_kinds_of_a_key_cover_the_sources_behind_a_fact,
    test_tombstones_hold_no_personal_text,
)
from tests.postgres import Server

world = world_in("postgresql", "role")


@pytest.fixture(params=["postgresql", "role"])
def store(request: pytest.FixtureRequest, postgres_server: Server) -> Iterator[MemoryStore]:
    owner, role = emptied(postgres_server)
    with opened(role if request.param == "role" else owner) as engine:
        yield MemoryStore(engine, Gate(Keyring.create()), At())
