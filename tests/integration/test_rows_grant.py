"""`expunge memory grant`: whom it refuses and what it leaves then, what a second run changes, and who is bound."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import sqlalchemy as sa

from adapters.memory import MemoryStore
from adapters.memory.chains import TaskScope, WallClock, open_in
from adapters.memory.engine import reading, writing
from adapters.memory.postgresql_rows import PRIVILEGES, bound, grant
from orchestrator import Gate, InvalidRequest, Keyring, Permanent, Scope, StoreLocked
from tests.fakes import FakeClock
from tests.integration.cli_harness import Shell
from tests.integration.rows_harness import application, as_role, bind, execute, make_tables, named, opened, owned
from tests.integration.test_memory_upgrade import TO_VERSION_3
from tests.postgres import Server, new_database

ANNA = Scope(tenant="acme", user="anna", project="trips")
GRANTS = """
    SELECT relname, relrowsecurity, relforcerowsecurity, array(SELECT unnest(relacl)::text ORDER BY 1)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1
"""
POLICIES = "SELECT polrelid::regclass::text, polname, pg_get_expr(polqual, polrelid) FROM pg_policy ORDER BY 1"
URL = "EXPUNGE_ADAPTERS__MEMORY__URL"
ALONE = "import typer; from adapters.memory.cli_grant import grant; typer.run(grant)"
GATE = Gate(Keyring.create())
CLOCK = WallClock(FakeClock())


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with closing(psycopg.connect(url.replace("+psycopg", ""))) as connection:
        return connection.execute(query.encode()).fetchall()


def is_bound(url: str) -> bool:
    with opened(url) as engine, reading(engine) as connection:
        return bound(connection)


class Granted(NamedTuple):
    """A database with a role that is bound, by the URLs of a superuser, the owner, and that role."""

    superuser: str
    owner: str
    role: str

    @property
    def url(self) -> str:
        return as_role(self.owner, self.role)

    @property
    def names(self) -> dict[str, str]:
        database = str(sa.make_url(self.superuser).database)
        return {"role": self.role, "owner": named(self.superuser, "owner"), "database": database, "super": "postgres"}


@pytest.fixture(scope="module")
def made(postgres_server: Server) -> Granted:
    """Give one database to the tests that leave it as it was."""
    url = new_database(postgres_server)
    granted = Granted(url, owned(url), application(url))
    bind(granted.owner, granted.role)
    return granted


@pytest.fixture
def owner(postgres_url: str) -> str:
    """Give the URL of an owner of an empty database, who is no superuser."""
    return owned(postgres_url)


@pytest.fixture
def role(postgres_url: str, owner: str) -> str:
    """Give a role that was granted nothing yet."""
    del owner
    return application(postgres_url)


@pytest.mark.req("R6")
def test_second_grant_changes_nothing_and_takes_back_what_was_given_besides(made: Granted) -> None:
    execute(
        made.owner, "REVOKE ALL ON SEQUENCE deletions_id_seq FROM PUBLIC"
    )  # from now on, its owner's rights are told
    before = rows(made.owner, GRANTS), rows(made.owner, POLICIES)
    bind(made.owner, made.role)
    assert (rows(made.owner, GRANTS), rows(made.owner, POLICIES)) == before
    execute(
        made.owner,
        f'GRANT ALL ON ALL TABLES IN SCHEMA public TO "{made.role}"',
        f'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "{made.role}"',
        "ALTER TABLE facts DISABLE ROW LEVEL SECURITY",
        "ALTER POLICY expunge_tenant ON confirmations USING (true)",
    )
    assert (rows(made.owner, GRANTS), rows(made.owner, POLICIES)) != before
    bind(made.owner, made.role)
    assert (rows(made.owner, GRANTS), rows(made.owner, POLICIES)) == before


@pytest.mark.req("R6")
def test_another_role_is_bound_alike_whatever_it_is_called(made: Granted) -> None:
    second = f'{made.role} %s {{}} "it\'s"'
    execute(made.superuser, 'CREATE ROLE "{}" LOGIN'.format(second.replace('"', '""')))
    bind(made.owner, second)
    assert is_bound(made.url)
    assert is_bound(as_role(made.owner, second))


WRONG = {
    "superuser": ('ALTER ROLE "{role}" SUPERUSER', "NOSUPERUSER NOBYPASSRLS"),
    "bypassing": ('ALTER ROLE "{role}" BYPASSRLS', "NOSUPERUSER NOBYPASSRLS"),
    "making roles": ('ALTER ROLE "{role}" CREATEROLE', "NOCREATEROLE"),
    "replicating": ('ALTER ROLE "{role}" REPLICATION', "NOREPLICATION"),
    "member of a superuser": ('GRANT "{super}" TO "{role}"', "no member of a role"),
    "reader of the server's files": ('GRANT pg_read_server_files TO "{role}"', "the server's files"),
    "owner of a table": ('ALTER TABLE facts OWNER TO "{role}"', "must be that of the tables' owner"),
    "member of the owner": ('GRANT "{owner}" TO "{role}"', "owns the tables"),
    "owner of the database": ('ALTER DATABASE "{database}" OWNER TO "{role}"', "owns the tables"),
    "maker of tables": ('GRANT CREATE ON SCHEMA public TO "{role}"', "REVOKE CREATE ON SCHEMA"),
    "everybody erases": ("GRANT DELETE ON facts TO PUBLIC", "the table facts than it is given"),
    "everybody sees jobs": ("GRANT SELECT ON revocation_targets TO PUBLIC", "the table revocation_targets"),
    "member of all readers": ('GRANT pg_read_all_data TO "{role}"', "than it is given"),
    "not there": ('DROP ROLE "{role}"', "CREATE ROLE"),
}


@pytest.mark.req("R6")
@pytest.mark.parametrize("wrong", WRONG)
def test_role_that_no_policy_binds_or_that_may_do_more_is_refused(made: Granted, wrong: str) -> None:
    change, told = WRONG[wrong]
    engine = sa.create_engine(made.superuser, poolclass=sa.NullPool)
    with engine.connect() as connection:  # all of it is rolled back
        if wrong == "not there":
            connection.exec_driver_sql('DROP OWNED BY "{role}"'.format(**made.names))
        connection.exec_driver_sql(change.format(**made.names))
        connection.exec_driver_sql('SET LOCAL ROLE "{owner}"'.format(**made.names))
        with pytest.raises(InvalidRequest, match=told) as caught:
            grant(connection, made.role)
    assert made.role not in str(caught.value)


@pytest.mark.req("R6")
def test_nobody_but_the_owner_grants(made: Granted) -> None:
    refusing = pytest.raises(InvalidRequest, match="the tables' owner")
    with opened(made.url) as engine, refusing, writing(engine, ()) as connection:
        grant(connection, made.role)
    bind(made.superuser, made.role)  # a superuser may do it for the owner


@pytest.mark.req("R6")
def test_bound_is_who_sees_one_tenant_in_every_table(made: Granted, tmp_path: Path) -> None:
    told = [is_bound(each) for each in (made.url, made.owner, made.superuser, f"sqlite:///{tmp_path / 'm.db'}")]
    assert told == [True, False, False, False]
    for change, back in (
        ("ALTER TABLE confirmations DISABLE ROW LEVEL SECURITY", "ALTER TABLE confirmations ENABLE ROW LEVEL SECURITY"),
        ("CREATE POLICY all_of_it ON memories USING (true)", "DROP POLICY all_of_it ON memories"),
        ('GRANT "{owner}" TO "{role}"', 'REVOKE "{owner}" FROM "{role}"'),
        # It may become the owner, though it has none of the owner's rights before.
        ('GRANT "{owner}" TO "{role}" WITH INHERIT FALSE', 'REVOKE "{owner}" FROM "{role}"'),
    ):
        execute(made.superuser, change.format(**made.names))
        assert not is_bound(made.url), change
        execute(made.superuser, back.format(**made.names))
        assert is_bound(made.url)


@pytest.mark.req("R6")
def test_role_without_a_grant_is_told_what_to_do_and_makes_no_tables(postgres_url: str, owner: str, role: str) -> None:
    for prepared in (False, True):
        with opened(as_role(owner, role)) as engine, pytest.raises(Permanent, match="expunge memory grant") as caught:
            MemoryStore(engine, GATE, FakeClock()).current(ANNA)
        assert caught.value.__cause__ is None
        if not prepared:
            assert rows(postgres_url, GRANTS) == []
            make_tables(owner)


@pytest.mark.req("R6")
def test_tables_that_come_later_are_granted_again(owner: str, role: str) -> None:
    with opened(owner) as memory, opened(as_role(owner, role)) as engine:
        with writing(memory, ()) as connection:
            first = grant(connection, role)
        assert {"memories", "drafts", "vector_points"} <= set(first.missing)
        assert {*first.tables, *first.missing} == PRIVILEGES.keys()
        for _ in range(2):  # it may make no tables, and not see those that others have made
            with pytest.raises(Permanent, match="expunge memory grant"):
                open_in(engine, CLOCK, GATE)
            open_in(memory, CLOCK, GATE)
        with writing(memory, ()) as connection:
            assert "memories" in grant(connection, role).tables
        assert open_in(engine, CLOCK, GATE).recall(TaskScope("anna", "trips", "acme"), "What?") == []


@pytest.mark.req("R6")
def test_tables_of_an_earlier_version_are_brought_up_by_their_owner_alone(owner: str, role: str) -> None:
    bind(owner, role)
    execute(owner, *TO_VERSION_3, "UPDATE memory_schema SET version = 3")
    with opened(as_role(owner, role)) as engine:
        store = MemoryStore(engine, GATE, FakeClock())
        with pytest.raises(Permanent, match="let the owner of the tables open them"):
            store.current(ANNA)
        make_tables(owner)
        bind(owner, role)
        assert store.current(ANNA) == []


@pytest.mark.req("R6")
def test_grant_that_is_refused_or_kept_waiting_has_done_nothing(postgres_url: str, owner: str, role: str) -> None:
    make_tables(owner)
    before = rows(postgres_url, GRANTS)
    with opened(owner) as engine:
        execute(postgres_url, "GRANT SELECT ON source_revocations TO PUBLIC")
        with pytest.raises(InvalidRequest), writing(engine, ()) as connection:
            grant(connection, role)
        execute(postgres_url, "REVOKE SELECT ON source_revocations FROM PUBLIC")
        with closing(psycopg.connect(postgres_url.replace("+psycopg", ""))) as reader:
            reader.execute("SELECT * FROM tenant_positions")
            with pytest.raises(StoreLocked), writing(engine, (), wait_ms=200) as connection:
                grant(connection, role)
    left = [row for row in rows(postgres_url, GRANTS) if row[0] != "source_revocations"]
    assert left == [row for row in before if row[0] != "source_revocations"]
    assert rows(postgres_url, POLICIES) == []


def command(state: Path, role: str, **variables: str) -> tuple[int, str, str]:
    """Run the command by itself, in a process of its own."""
    words = [sys.executable, "-c", ALONE, role, "--dir", str(state)]
    environment = Shell(state).environment(**variables)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.req("R6")
def test_command_grants_and_says_what_is_not_there_yet(tmp_path: Path, owner: str, role: str) -> None:
    shell = Shell(tmp_path / "state")
    assert shell("init", "--store", "memory")[0] == 0
    code, _, errors = command(shell.state, role)
    assert (code, errors.count("\n")) == (2, 1)
    assert "row-level security needs PostgreSQL" in errors
    for _ in range(2):
        code, told, errors = command(shell.state, role, **{URL: owner})
        assert (code, errors) == (0, "")
        assert "granted: " in told
        assert "to be granted again when they are: approvals, draft_jobs" in told
        assert "memories" not in told, "they are made, and granted"
    assert is_bound(as_role(owner, role))
    code, told, errors = command(shell.state, named(owner, "owner"), **{URL: owner})
    assert (code, told) == (2, "")
    assert "make another role for applications" in errors
    assert command(shell.state, role, **{URL: as_role(owner, role)})[0] == 2
