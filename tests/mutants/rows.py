"""One rule of row-level security changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change

MUTATIONS: Final = (
    change(
        "a policy lets every tenant through",
        "adapters/memory/postgresql_rows.py",
        '_OF_TENANT: Final = f"(tenant = {_NAMED})"',
        '_OF_TENANT: Final = "(true)"',
        "tests/integration/test_rows_postgres.py::test_query_without_the_tenant_setting_returns_0_rows[None]",
        "tests/integration/test_rows_postgres.py::test_rows_of_another_tenant_are_neither_read_nor_changed_nor_deleted",
    ),
    change(
        "a connection keeps its tenant",
        "adapters/memory/postgresql.py",
        "set_config('expunge.tenant', %(tenant)s, true)",
        "set_config('expunge.tenant', %(tenant)s, false)",
        "tests/integration/test_rows_postgres.py::test_pool_gets_a_connection_back_that_names_no_tenant",
    ),
    change(
        "an empty tenant is a tenant",
        "adapters/memory/postgresql_rows.py",
        "nullif(current_setting('expunge.tenant', true), '')",
        "coalesce(current_setting('expunge.tenant', true), '')",
        "tests/integration/test_rows_postgres.py::test_without_the_tenant_setting_no_row_is_taken[None]",
    ),
    change(
        "what a policy hides is not refused",
        "adapters/memory/postgresql.py",
        '"on" if tenant else "off"',
        '"on"',
        "tests/integration/test_rows_postgres.py::test_pooled_connection_forgets_its_tenant_and_asks_for_none_in_silence",
    ),
)
