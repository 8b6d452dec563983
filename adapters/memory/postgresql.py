"""The store in a PostgreSQL database: what BEGIN IMMEDIATE does for SQLite, one lock a tenant does here.

Principles: every write transaction takes the advisory locks of its tenants before it reads
anything, in one order for all, and keeps them to its end. So a writer that waits for a
revocation decides after its commit and sees its tombstones; numbers that are the highest
plus one (positions, versions, revisions) are given once; and no two writers wait for each
other. Row locks alone would not do: what refuses a write is a tombstone that was not there
when the writer began. Writers are READ COMMITTED for the same reason: their first statement
is the wait, and a snapshot that is taken with it would be older than the lock. SERIALIZABLE
would be right as well, but lets a writer fail in the end instead of wait in the beginning.

Readers lock nothing: they see one snapshot and cannot write. What is erased here is not
visible any more; its bytes stay until a vacuum, and in archived logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from adapters.memory.tables import SCHEMA_VERSION, statements, upgrade
from orchestrator import DeadlinePassed, ErrorCode, Permanent, Residual, StoreLocked, StoreUnreachable, Transient

READING: Final[Mapping[str, Any]] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
WRITING: Final[Mapping[str, Any]] = {"isolation_level": "READ COMMITTED"}
DRIVER_ERROR: Final = psycopg.Error
RESIDUALS: Final = frozenset({Residual.DEAD_TUPLES, Residual.WAL_ARCHIVE})
# No call may hang on a host that has gone; a URL may say otherwise.
PATIENCE: Final[Mapping[str, int]] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
LIMITS: Final = (
    "SELECT set_config('lock_timeout', %(locks)s, true), set_config('statement_timeout', %(statements)s, true),"
    " set_config('expunge.tenant', %(tenant)s, true), set_config('row_security', %(rows)s, true)"
)
# Two halves, as PostgreSQL keeps them apart from the one number of a tenant's lock.
_TABLES: Final = (0x6578_7075, 0x6E67_6521)
_VERSIONS: Final = "CREATE TABLE memory_schema (version bigint PRIMARY KEY)"

# Errors of PostgreSQL by code (appendix A of its manual); what is not here is refused, perhaps for now.
_LOCKED: Final = frozenset({"55P03", "40P01", "40001"})  # lock timeout, deadlock, serialization
_UNREACHABLE: Final = frozenset({"57P01", "57P02", "57P03", "57P05", "53300"})  # shutdown, start, idle, connections
_UNSOUND: Final = frozenset({"XX001", "XX002"})
_NO_RIGHT: Final = frozenset({"42501", "3F000"})  # a privilege or a policy, no schema that may be used
_UNGRANTED: Final = (
    "The database does not let this role do that: let the owner of the tables open them, then run"
    " `expunge memory grant` with the owner's URL."
)
_OUT_OF_TIME: Final = "57014"
_LIMIT: Final = "54"


def create_engine(url: sa.URL) -> sa.Engine:
    """Give an engine that opens nothing yet. A connection that died while it was idle is replaced unseen."""
    patience = {name: value for name, value in PATIENCE.items() if name not in url.query}
    return sa.create_engine(url, hide_parameters=True, pool_pre_ping=True, connect_args=patience)


def prepare(driver: psycopg.Connection[Any]) -> None:
    """Check what the store rests on, and make the tables where there are none: one process at a time."""
    if driver.info.parameter_status("server_encoding") != "UTF8":
        message = "The database must have the encoding UTF8."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    with driver.transaction():
        driver.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        driver.execute("SELECT pg_advisory_xact_lock(%s, %s)", _TABLES)
        row = driver.execute("SELECT current_setting('synchronous_commit'), to_regclass('memory_schema')").fetchone()
        durable, found = row or ("off", None)
        if durable == "off":
            message = "synchronous_commit is off: a revocation could be lost after it was reported."
            raise Permanent(message, code=ErrorCode.STORE_REFUSED)
        if found is None:
            _create(driver)
        else:
            _bring_up(driver)


def begin(connection: sa.Connection, wait_ms: int) -> None:
    """Bound every statement of a transaction, and its waits for locks a little shorter, so that both are told apart.

    The policies of the tables are told its tenant, if it has exactly one; any other is told to them by nobody, though
    the session may have been left with one.
    """
    options = connection.get_execution_options()
    tenants = set(options.get("tenants", ()))
    tenant = tenants.pop() if len(tenants) == 1 else ""
    connection.exec_driver_sql(LIMITS, limits(wait_ms, int(options.get("call_ms", 0)), tenant))


def limits(wait_ms: int, call_ms: int = 0, tenant: str = "") -> dict[str, str]:
    """Give the parameters of `LIMITS`; a limit of 0 would be none, and an empty tenant is none.

    Without a tenant, PostgreSQL refuses whatever a policy would hide rows from: what is hidden must never be taken for
    what is not there.
    """
    return {
        "locks": str(max(1, wait_ms * 9 // 10)),
        "statements": str(max(1, wait_ms, call_ms)),
        "tenant": tenant,
        "rows": "on" if tenant else "off",
    }


def lock(connection: sa.Connection, tenants: Collection[str]) -> None:
    """Take the locks of the tenants, in ascending order: two writers with the same tenants never cross."""
    numbers = sorted({_number(tenant) for tenant in tenants})
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(number) FROM unnest(%s::bigint[]) AS number", (numbers,))


def empty_log(_engine: sa.Engine) -> bool:
    """Do nothing: the server keeps its log by itself, as `RESIDUALS` says."""
    return True


def translate(error: BaseException | None) -> Exception:
    """Choose the error of the contract for one of the driver's."""
    state = getattr(error, "sqlstate", None)
    if state in _LOCKED:
        return StoreLocked()
    if state == _OUT_OF_TIME:
        return DeadlinePassed()
    if state in _UNREACHABLE or _is_lost(error, state):
        return StoreUnreachable()
    if state in _UNSOUND:
        return Permanent("The database is not sound.", code=ErrorCode.STORE_REFUSED)
    if state in _NO_RIGHT:
        return Permanent(_UNGRANTED, code=ErrorCode.STORE_REFUSED)
    if state is not None and state.startswith(_LIMIT):
        return Permanent("A name is longer than this database can index.", code=ErrorCode.STORE_REFUSED)
    return Transient("The store refused the call.", code=ErrorCode.STORE_REFUSED)


def _is_lost(error: BaseException | None, state: str | None) -> bool:
    """Tell whether the connection failed: the driver then has no code, or one of class 08."""
    if state is not None:
        return state.startswith("08")
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _create(driver: psycopg.Connection[Any]) -> None:
    dialect: sa.Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy gives it no types
    for statement in (*statements(dialect), _VERSIONS):
        driver.execute(statement.encode())
    driver.execute("INSERT INTO memory_schema VALUES (%s)", (SCHEMA_VERSION,))


def _bring_up(driver: psycopg.Connection[Any]) -> None:
    versions = [row[0] for row in driver.execute("SELECT version FROM memory_schema").fetchall()]
    if len(versions) != 1 or not 0 < versions[0] <= SCHEMA_VERSION:
        message = "The database belongs to another version of this adapter."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    if versions[0] < SCHEMA_VERSION:
        dialect: sa.Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy gives it no types
        for statement in upgrade(dialect, versions[0]):
            driver.execute(statement.encode())
        driver.execute("UPDATE memory_schema SET version = %s", (SCHEMA_VERSION,))


def _number(tenant: str) -> int:
    """Give a tenant's lock: two that share one only wait for each other."""
    digest = hashlib.blake2b(tenant.encode(), digest_size=8, person=b"expunge.memory").digest()
    return int.from_bytes(digest, signed=True)
