"""The memory store on PostgreSQL: what it takes as a URL, exact names, and what it says when something is wrong."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory.engine import reading, writing
from adapters.memory.look import looking
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    Gate,
    InvalidRequest,
    Keyring,
    Permanent,
    Residual,
    Scope,
    Selector,
    SelectorKind,
    StoreLocked,
    StoreUnreachable,
    Transient,
)
from tests.postgres import new_database, server

A = Scope(tenant="tenant-a", user="reader-A", project="trips")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
PASSPORT = "My passport number is P1234567"


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)


def open_adapter(url: object) -> MemoryAdapter:
    context = AdapterContext(clock=Now(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=Path())
    return MemoryAdapter(context, url=url)


def order(selector: Selector = SUBJECT, scope: Scope = A, *, seconds: float = 20) -> EraseOrder:
    deadline = Now().now() + timedelta(seconds=seconds)
    return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)


def execute(url: str, statement: str) -> None:
    with closing(psycopg.connect(url.replace("+psycopg", ""), autocommit=True)) as connection:
        connection.execute(statement.encode())


@pytest.fixture
def adapter(postgres_url: str) -> Iterator[MemoryAdapter]:
    with closing(open_adapter(postgres_url)) as made:
        made.store.register_source(A, "turn-6")
        made.store.put(A, "passport", PASSPORT, "turn-6")
        yield made


def test_a_plain_url_is_read_by_the_same_driver(adapter: MemoryAdapter, postgres_url: str) -> None:
    with closing(open_adapter(postgres_url.replace("+psycopg", ""))) as plain:
        assert plain.store.current(A) == adapter.store.current(A)
        assert plain._engine.dialect.driver == "psycopg"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://anna:hunter2@h/d",
        "postgresql+psycopg2://anna:hunter2@h/d",
        "postgresql+asyncpg://anna:hunter2@h/d",
        "postgresql://anna:hunter2@h",
        "postgres:anna:hunter2",
        "postgresql://anna:hunter2@h:port/d",
        ["hunter2"],
    ],
)
def test_another_backend_is_refused_in_words_that_hold_no_password(url: object) -> None:
    with pytest.raises(InvalidRequest, match=r"PostgreSQL database|option url is not valid") as caught:
        open_adapter(url)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    url = f"postgresql://anna:hunter2@/d?host={tmp_path}"
    with closing(open_adapter(url)) as adapter:
        told = [repr(vars(adapter)), repr(adapter._engine)]
        for call in (adapter.revoke, adapter.find, adapter.erase, adapter.verify):
            with pytest.raises(StoreUnreachable) as caught:
                call([order()])
            told += ["".join(traceback.format_exception(caught.value)), repr(vars(caught.value))]
    assert not any("hunter2" in line or str(tmp_path) in line for line in told[2:])
    assert "hunter2" not in told[0] + told[1]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder outside of pytest's, which another run may take from the server's user at any moment."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_a_server_that_stops_is_unreachable_and_comes_back_with_its_data(folder: Path) -> None:
    with server(folder) as running:
        adapter = open_adapter(new_database(running))
        adapter.store.register_source(A, "turn-6")
        adapter.store.put(A, "passport", PASSPORT, "turn-6")
        targets = adapter.find([order()])[0].targets
    for call in (adapter.revoke, adapter.find, adapter.erase, adapter.verify):
        with pytest.raises(StoreUnreachable) as caught:
            call([replace(order(), targets=targets)])
        assert caught.value.__cause__ is None
        assert str(folder) not in str(caught.value)
    with pytest.raises(StoreUnreachable):
        adapter.store.put(A, "passport", PASSPORT, "turn-6")
    with server(folder):
        assert adapter.verify([replace(order(), targets=targets)])[0].remaining == 1
        assert adapter.find([order()])[0].targets == targets
        adapter.close()


def test_a_connection_that_died_unused_is_replaced_unseen(adapter: MemoryAdapter, postgres_url: str) -> None:
    name = sa.make_url(postgres_url).database
    others = f"pid <> pg_backend_pid() AND datname = '{name}'"
    execute(postgres_url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")  # noqa: S608
    assert len(adapter.store.current(A)) == 1


def test_a_tenant_that_is_locked_says_so_within_the_deadline(adapter: MemoryAdapter, postgres_url: str) -> None:
    with closing(open_adapter(postgres_url)) as other, writing(other._engine, [A.tenant]):
        asked = order(seconds=0.3)
        with pytest.raises(StoreLocked):
            adapter.revoke([asked])
        assert len(adapter.find([order()])[0].targets) == 1, "readers do not wait for a writer"
        assert adapter.verify([order()])[0].remaining == 1


def test_a_table_that_is_locked_or_a_slow_statement_ends_with_the_deadline(
    adapter: MemoryAdapter, postgres_url: str
) -> None:
    with closing(psycopg.connect(postgres_url.replace("+psycopg", ""))) as blocker:
        blocker.execute("LOCK TABLE facts IN ACCESS EXCLUSIVE MODE")
        for call in (adapter.find, adapter.verify):
            with pytest.raises(StoreLocked):
                call([order(seconds=0.3)])
    with pytest.raises(DeadlinePassed), reading(adapter._engine, wait_ms=50) as connection:
        connection.exec_driver_sql("SELECT pg_sleep(5)")


def test_readers_cannot_write(adapter: MemoryAdapter) -> None:
    with pytest.raises(Transient), reading(adapter._engine) as connection:
        connection.exec_driver_sql("DELETE FROM facts")
    with pytest.raises(Transient), looking(adapter._url, wait_ms=1000) as look:
        list(look("DELETE FROM facts RETURNING 1", ("number",), [(1,)]))
    assert len(adapter.store.current(A)) == 1


def test_an_error_repeats_no_value(adapter: MemoryAdapter, postgres_url: str) -> None:
    tell = "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE '%', NEW.value; END $$"
    execute(postgres_url, tell)
    execute(postgres_url, "CREATE TRIGGER fault BEFORE INSERT ON facts FOR EACH ROW EXECUTE FUNCTION tell()")
    renewed = PASSPORT.replace("1234567", "7654321")
    with pytest.raises(Transient) as caught:
        adapter.store.put(A, "passport", renewed, "turn-6")
    assert renewed not in "".join(traceback.format_exception(caught.value))
    assert [(f.version, f.value) for f in adapter.store.current(A)] == [(1, PASSPORT)]
    assert adapter.store.revision(A) == 1


def test_another_versions_database_is_refused(adapter: MemoryAdapter, postgres_url: str) -> None:
    adapter.close()
    execute(postgres_url, "UPDATE memory_schema SET version = 99")
    with pytest.raises(Permanent, match="another version"):
        adapter.store.current(A)


def test_a_database_that_may_lose_a_commit_or_a_letter_is_refused(postgres_url: str) -> None:
    url, name = postgres_url, sa.make_url(postgres_url).database
    execute(url, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    with closing(open_adapter(url)) as adapter, pytest.raises(Permanent, match="synchronous_commit"):
        adapter.store.current(A)
    execute(url, f"CREATE DATABASE \"{name}-latin\" TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    latin = url.replace(str(name), f"{name}-latin")
    with closing(open_adapter(latin)) as adapter, pytest.raises(Permanent, match="UTF8"):
        adapter.store.current(A)


def test_names_that_are_too_long_for_the_index_are_refused_for_good(adapter: MemoryAdapter) -> None:
    long = "".join(chr(0x4E00 + n * 37 % 20000) for n in range(512))
    scope = replace(A, user=long, project=long)
    with pytest.raises(Permanent, match="longer") as caught:
        adapter.store.register_source(scope, long)
    assert long not in str(caught.value)


def test_a_value_with_a_nul_is_refused_before_any_database_sees_it(adapter: MemoryAdapter) -> None:
    with pytest.raises(InvalidRequest, match="NUL"):
        adapter.store.put(A, "passport", "a\0b", "turn-6")


def test_what_is_erased_leaves_dead_rows_and_an_archive(adapter: MemoryAdapter) -> None:
    asked = order()
    targets = adapter.revoke([asked])[0].targets
    erase = replace(asked, targets=targets)
    left = frozenset({Residual.DEAD_TUPLES, Residual.WAL_ARCHIVE})
    assert adapter.erase([erase, order()]) == [Erased(erased=1, residuals=left), Erased()]
    assert adapter.erase([erase]) == [Erased(already_absent=1)]


NAMES = (
    ("user:1", "user:10"),
    ("User:1", "user:1"),
    ("user ", "user"),
    (" user", "user"),
    ("a%", "ab"),
    ("a_c", "abc"),
    ("it's", "its"),
    ('quo"te', "quote"),
    ("back\\slash", "back\\\\slash"),
    ("{a,b}", "a"),
    ("NULL", "null"),
    ("new\nline", "new line"),
    ("caf\u00e9", "cafe\u0301"),
    ("stra\u00dfe", "strasse"),
    ("\U0001f600", "\U0001f601"),
    ("x" * 512, "x" * 511),
)


@pytest.mark.req("R8")
def test_names_are_exact_and_ordered_alike_on_both_databases(tmp_path: Path, postgres_url: str) -> None:
    told = []
    for url in (f"sqlite:///{tmp_path / 'm.db'}", postgres_url):
        with closing(open_adapter(url)) as adapter:
            told.append([taken(adapter, mine, theirs) for mine, theirs in NAMES])
    assert told[0] == told[1]


def taken(adapter: MemoryAdapter, mine: str, theirs: str) -> list[list[str]]:
    """Erase a key, then a subject, and check that no name that looks like it lost anything."""
    asked = Scope(tenant=mine, user=mine, project=mine)
    others = [replace(asked, project=theirs), replace(asked, user=theirs), replace(asked, tenant=theirs)]
    for number, scope in enumerate((asked, *others)):
        source = f"{mine[:500]}{number}"
        adapter.store.register_source(scope, source)
        for key in (mine, theirs, "Zebra", "apple", "\u00c4pfel"):
            adapter.store.put(scope, key, f"text {number}", source)
    for selector, expected in ((Selector(kind=SelectorKind.KEY, value=mine), 1), (SUBJECT, 4)):
        job = order(selector, asked)
        erase = replace(job, targets=adapter.revoke([job])[0].targets)
        assert adapter.erase([erase])[0].erased == expected
        assert adapter.verify([erase])[0].remaining == 0
    assert adapter.store.current(asked) == []
    left = [[fact.key for fact in adapter.store.current(scope)] for scope in others]
    assert [len(keys) for keys in left] == [5, 5, 5]
    return left
