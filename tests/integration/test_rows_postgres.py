"""Row-level security in every table that holds a tenant's rows: the list is the database's own, not one of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege, UniqueViolation

from adapters.memory.engine import open_engine, reading, writing
from adapters.memory.postgresql_rows import PRIVILEGES
from adapters.memory.tables import facts
from orchestrator import Permanent
from tests.integration.rows_harness import application, as_role, bind, execute, named, opened, owned, with_all_tables
from tests.postgres import Server, new_database

# What holds nobody's rows, or those of all tenants: no policy could tell them apart. A new table has to be judged.
OF_NO_TENANT = {
    "chain_schema",
    "draft_schema",
    "fact_high_water",
    "memory_schema",
    "revocation_left",
    "revocation_targets",
    "source_epoch",
    "source_revocations",
    "vector_schema",
}
TABLES = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute AS a
    WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull ORDER BY a.attnum
"""
REFERENCES = "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'f'"
INSTANT = "2026-11-01 00:00:00+00"
A, B, NEW = "tenant-a", "tenant-b", {"tenant-a": 3, "tenant-b": 4}


class Rows:
    """A database with a row of two tenants in every table; `role` was granted, `all` may do all that policies allow."""

    def __init__(self, url: str) -> None:
        self.url, self.owner = url, owned(url)
        with_all_tables(url, self.owner)
        self.role = application(url)
        bind(self.owner, self.role)
        self.all = named(url, "all")
        execute(url, f'CREATE ROLE "{self.all}" LOGIN', f'GRANT ALL ON ALL TABLES IN SCHEMA public TO "{self.all}"')
        with self.open() as connection:
            self.tables = [name for (name,) in connection.execute(TABLES).fetchall()]
            for table, key in connection.execute(REFERENCES).fetchall():  # its rows refer to none
                connection.execute(
                    sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(*map(sql.Identifier, (table, key)))
                )
            for table in self.tables:
                if table not in OF_NO_TENANT:
                    for number, tenant in enumerate((A, B), 1):
                        insert(connection, table, tenant, number)
            connection.commit()

    @property
    def of_tenants(self) -> list[str]:
        return sorted(set(self.tables) - OF_NO_TENANT)

    @contextmanager
    def open(self, role: str | None = None, tenant: str | None = None) -> Iterator[psycopg.Connection[Any]]:
        """Open a transaction that is rolled back in the end, as a superuser or under a role."""
        url = self.url if role is None else as_role(self.url, role)
        with closing(psycopg.connect(url.replace("+psycopg", ""))) as connection:
            if tenant is not None:
                connection.execute("SELECT set_config('expunge.tenant', %s, true)", (tenant,))
            yield connection


def insert(connection: psycopg.Connection[Any], table: str, tenant: str, number: int) -> None:
    """Insert a row that says of itself whose it is; what may be null is."""
    values: dict[str, str | int] = {}
    for name, kind in connection.execute(COLUMNS, (table,)).fetchall():
        in_words = {"text": f"{name}-{number}", "vector": "[1,2,3]", "timestamp with time zone": INSTANT}
        values[name] = tenant if name == "tenant" else in_words.get(kind, number)
    names, places = map(sql.Identifier, values), [sql.Placeholder()] * len(values)
    into = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table), sql.SQL(", ").join(names), sql.SQL(", ").join(places)
    )
    connection.execute(into, list(values.values()))


def count(connection: psycopg.Connection[Any], table: str) -> int:
    found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
    assert found is not None
    return int(found[0])


def changed(connection: psycopg.Connection[Any], table: str) -> int:
    """Write each row of a table as it is, and give how many there were to write."""
    column = connection.execute(COLUMNS, (table,)).fetchall()[0][0]
    names = map(sql.Identifier, (table, column, column))
    return connection.execute(sql.SQL("UPDATE {} SET {} = {}").format(*names)).rowcount


def deleted(connection: psycopg.Connection[Any], table: str) -> int:
    return connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table))).rowcount


@pytest.fixture(scope="module")
def rows(postgres_server: Server) -> Rows:
    return Rows(new_database(postgres_server))


@pytest.mark.req("R6")
def test_every_table_has_been_judged(rows: Rows) -> None:
    assert set(rows.tables) == PRIVILEGES.keys(), "a new table: say in PRIVILEGES what an application may do with it"
    with rows.open() as connection:
        protected = connection.execute(f"{TABLES} AND relrowsecurity AND NOT relforcerowsecurity").fetchall()
    assert sorted(name for (name,) in protected) == rows.of_tenants


@pytest.mark.req("R6")
@pytest.mark.parametrize("setting", [None, ""])
def test_query_without_the_tenant_setting_returns_0_rows(rows: Rows, setting: str | None) -> None:
    with rows.open(rows.all, setting) as connection:
        assert {table: count(connection, table) for table in rows.of_tenants} == dict.fromkeys(rows.of_tenants, 0)
    with rows.open() as connection:
        assert {count(connection, table) for table in rows.of_tenants} == {2}, "they are there"


@pytest.mark.req("R6")
@pytest.mark.parametrize("setting", [None, ""])
def test_without_the_tenant_setting_no_row_is_taken(rows: Rows, setting: str | None) -> None:
    for table in rows.of_tenants:
        with rows.open(rows.all, setting) as connection, pytest.raises(InsufficientPrivilege, match="row-level"):
            insert(connection, table, A, NEW[A])


@pytest.mark.req("R6")
def test_rows_of_another_tenant_are_neither_read_nor_changed_nor_deleted(rows: Rows) -> None:
    for table in rows.of_tenants:
        with rows.open(rows.all, A) as connection:
            assert count(connection, table) == 1, table
            if table != "deletions":  # of which none is taken, not even as it was
                assert changed(connection, table) == 1, table
            assert deleted(connection, table) == 1, table
            connection.execute("SELECT set_config('expunge.tenant', %s, true)", (B,))
            assert count(connection, table) == 1, table


@pytest.mark.req("R6")
def test_no_row_is_given_to_another_tenant(rows: Rows) -> None:
    with_column = [table for table in rows.of_tenants if table not in ("memories", "deletions")]
    for table in with_column:
        with rows.open(rows.all, A) as connection, pytest.raises(InsufficientPrivilege, match="row-level"):
            insert(connection, table, B, NEW[B])
        with rows.open(rows.all, A) as connection, pytest.raises(InsufficientPrivilege, match="row-level"):
            connection.execute(sql.SQL("UPDATE {} SET tenant = {}").format(sql.Identifier(table), B))
        with rows.open(rows.all, A) as connection:
            try:
                insert(connection, table, A, NEW[A])  # the same of one's own
            except UniqueViolation:
                assert table == "tenant_positions", table  # of which a tenant has one: the policy let it through
            else:
                assert count(connection, table) == 2, table


@pytest.mark.req("R6")
def test_memory_is_shown_when_its_tenant_is_known_and_goes_on_no_foreign_chain(rows: Rows) -> None:
    values = f"9, 'anna', 'Eats fish.', 'turn-1', '{INSTANT}'"
    into = "INSERT INTO memories (id, user_id, text, source, created_at, supersedes) VALUES ({}, {})"
    with rows.open(rows.role, A) as connection:
        connection.execute(into.format(values, "NULL").encode())
        assert count(connection, "memories") == 1, "it is nobody's yet"
        connection.execute("INSERT INTO memory_tenants VALUES (9, 'tenant-a', 0)")
        assert count(connection, "memories") == 2
        connection.execute("SELECT set_config('expunge.tenant', %s, true)", (B,))
        assert count(connection, "memories") == 1
        with pytest.raises(InsufficientPrivilege, match="row-level"):
            connection.execute(into.format(values.replace("9", "10", 1), "9").encode())
    with rows.open(rows.role, A) as connection:
        connection.execute(into.format(values, "1").encode())  # a correction of one's own


@pytest.mark.req("R6")
def test_role_may_do_what_the_libraries_need_and_nothing_else(rows: Rows) -> None:
    names = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN")
    with rows.open() as connection:
        for table in rows.tables:
            for name in names:
                may = connection.execute("SELECT has_table_privilege(%s, %s, %s)", (rows.role, table, name)).fetchone()
                assert may == (name in PRIVILEGES[table],), (table, name)
        drawn = connection.execute(
            "SELECT s.relname, p FROM pg_class AS s, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS p"
            " WHERE s.relkind = 'S' AND has_sequence_privilege(%s, s.oid, p)",
            (rows.role,),
        ).fetchall()
    assert drawn == [("memories_id_seq", "USAGE")]


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE facts DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE facts NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY expunge_tenant ON facts",
        "ALTER POLICY expunge_tenant ON facts USING (true)",
        "CREATE POLICY other ON facts USING (true)",
        "ALTER TABLE facts OWNER TO CURRENT_USER",
        "ALTER ROLE CURRENT_USER BYPASSRLS",
        'SET ROLE "{owner}"',
        'SET SESSION AUTHORIZATION "{owner}"',
        "TRUNCATE facts CASCADE",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE TRIGGER tell BEFORE INSERT ON facts FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "SET row_security = off; SELECT * FROM facts",
    ],
)
def test_role_cannot_get_rid_of_its_policies(rows: Rows, statement: str) -> None:
    with rows.open(rows.role, A) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement.format(owner=named(rows.url, "owner")).encode())


@pytest.mark.req("R6")
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "RESET expunge.tenant", "RESET ALL", "DISCARD ALL"])
def test_no_transaction_leaves_its_tenant_to_the_next(rows: Rows, end: str) -> None:
    with rows.open(rows.role) as connection:
        connection.autocommit = True
        connection.execute("BEGIN" if end in ("COMMIT", "ROLLBACK") else "SELECT 1")
        is_local = end in ("COMMIT", "ROLLBACK")
        connection.execute("SELECT set_config('expunge.tenant', %s, %s)", (A, is_local))
        assert count(connection, "facts") == 1
        connection.execute(end.encode())
        assert count(connection, "facts") == 0


@pytest.mark.req("R6")
def test_pooled_connection_forgets_its_tenant_and_asks_for_none_in_silence(rows: Rows) -> None:
    engine = open_engine(as_role(rows.url, rows.role))
    with reading(engine, [A]) as connection:
        first = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        assert len(connection.execute(facts.select()).all()) == 1
        connection.exec_driver_sql(
            "SELECT set_config('expunge.tenant', 'tenant-a', false)"
        )  # as a careless program does
    for tenants in ((), (A, B)):
        for begin in (reading, writing):
            with begin(engine, tenants) as connection:
                asked = "SELECT pg_backend_pid(), current_setting('expunge.tenant', true)"
                assert connection.exec_driver_sql(asked).one() == (first, "")
            # What is hidden must never be taken for what is not there.
            with pytest.raises(Permanent, match="expunge memory grant"), begin(engine, tenants) as connection:
                connection.execute(facts.select())
    with reading(engine, [B]) as connection:
        assert [row.tenant for row in connection.execute(facts.select())] == [B]
    engine.dispose()


@pytest.mark.req("R6")
def test_pool_gets_a_connection_back_that_names_no_tenant(rows: Rows) -> None:
    with opened(as_role(rows.url, rows.role)) as engine:
        for begin in (reading, writing):
            with begin(engine, [A]) as connection:
                first = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            # As a program that begins no transaction of ours would take it out of the pool.
            with closing(engine.raw_connection()) as raw:
                cursor = raw.cursor()
                cursor.execute("SELECT pg_backend_pid(), coalesce(current_setting('expunge.tenant', true), '')")
                assert cursor.fetchone() == (first, "")


@pytest.mark.req("R6")
def test_owner_sees_all_tenants_whichever_is_named(rows: Rows) -> None:
    with opened(rows.owner) as engine:
        for tenants in ((), (A,), (A, B)):
            with reading(engine, tenants) as connection:
                assert len(connection.execute(facts.select()).all()) == 2
