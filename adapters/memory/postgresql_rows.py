"""Row-level security: under a role of an application, a statement that forgets its tenant finds nothing.

Principles: the tenant is named to a transaction by `expunge.tenant`, and where it is not named, or
empty, no row is shown and none is taken. A role is given what the libraries need and no more:
it never erases, and sees nothing of jobs. Workers and commands own the tables, are not bound, and
so see all tenants. All of a grant is done, or nothing.

A policy keeps a mistake from reaching another tenant. It does not keep out whoever has the role's
password: that program names its tenants itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.rows import class_row

from orchestrator import InvalidRequest

_READ: Final = ("SELECT",)
_ADD: Final = ("SELECT", "INSERT")
_CHANGE: Final = ("SELECT", "INSERT", "UPDATE")
_NONE: Final = ()
PRIVILEGES: Final[Mapping[str, tuple[str, ...]]] = {
    # Facts and where they came from; a forgotten one is blanked, and erased by its job.
    "accepted_sources": _ADD,
    "confirmations": _ADD,
    "fact_revisions": _CHANGE,
    "facts": _CHANGE,
    "source_ancestry": _ADD,
    "source_tombstones": _READ,
    "tenant_positions": _CHANGE,
    # Preferences and candidates.
    "erased_events": _READ,
    "fact_candidates": _CHANGE,
    "preference_events": _ADD,
    "preferences": (*_CHANGE, "DELETE"),  # built anew from the log
    "source_reaches": _ADD,
    # Memories with their corrections.
    "deletion_tenants": _READ,
    "deletions": _READ,
    "memories": _ADD,
    "memory_tenants": _ADD,
    # Draft jobs.
    "approvals": _CHANGE,
    "draft_jobs": _CHANGE,
    "draft_used": _ADD,
    "drafts": _ADD,
    "step_dependencies": _ADD,
    # Points, where the index is in this database.
    "vector_points": _CHANGE,
    "vector_probes": _NONE,
    # Of no tenant: keyed hashes with a number, which the next version has to be above; the epoch, without which
    # nothing is served; and versions, which whoever opens the tables compares.
    "chain_schema": _READ,
    "draft_schema": _READ,
    "fact_high_water": _READ,
    "memory_schema": _READ,
    "source_epoch": _READ,
    "vector_schema": _READ,
    # What jobs took, of all tenants, and by which a scan of files looks.
    "record_prints": _NONE,
    "revocation_left": _NONE,
    "revocation_targets": _NONE,
    "source_revocations": _NONE,
}
"""What a role may do with each table of ours that there may be in a source database."""

POLICY: Final = "expunge_tenant"
_NAMED: Final = "nullif(current_setting('expunge.tenant', true), '')"
_OF_TENANT: Final = f"(tenant = {_NAMED})"
# Rows whose tenant stands in a table beside them. A memory comes before its row there, so anybody who has named a
# tenant may begin one; it is shown to nobody before it has that row, and goes on no chain of anybody else.
_BESIDE: Final[Mapping[str, tuple[str, str]]] = {
    "memories": (
        f"EXISTS (SELECT FROM memory_tenants AS t WHERE t.memory_id = memories.id AND t.tenant = {_NAMED})",
        f"""{_NAMED} IS NOT NULL AND (supersedes IS NULL OR EXISTS (
            SELECT FROM memory_tenants AS t WHERE t.memory_id = memories.supersedes AND t.tenant = {_NAMED}))""",
    ),
    "deletions": (
        f"EXISTS (SELECT FROM deletion_tenants AS t WHERE t.deletion_id = deletions.id AND t.tenant = {_NAMED})",
        "false",
    ),
}
_DRAWN: Final[Mapping[str, tuple[str, ...]]] = {"deletions": _NONE, "memories": ("USAGE",)}
"""What a role may do with the sequences that ids of tables are drawn from."""

# What is found on the way to a name without a schema is what the libraries find.
_HERE: Final = """
    SELECT c.relname, c.oid, EXISTS (
        SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
    ) AS has_tenant
    FROM unnest(%s::text[]) AS given (name) JOIN pg_class AS c ON c.oid = to_regclass(given.name)
    WHERE c.relkind IN ('r', 'p') ORDER BY c.relname
"""
_ROLE: Final = """
    SELECT r.oid,
        bool_or(o.rolsuper OR o.rolbypassrls OR o.rolcreaterole OR o.rolreplication OR o.rolname = ANY (%(dangerous)s)),
        bool_or(o.oid IN (SELECT relowner FROM pg_class WHERE oid = ANY (%(tables)s))
            OR o.oid = (SELECT nspowner FROM pg_namespace WHERE nspname = current_schema())
            OR o.oid = (SELECT datdba FROM pg_database WHERE datname = current_database()))
    FROM pg_roles AS r JOIN pg_roles AS o ON pg_has_role(r.oid, o.oid, 'MEMBER')
    WHERE r.rolname = %(role)s GROUP BY r.oid
"""
_DANGEROUS: Final = ["pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"]
_IS_OWNER: Final = "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE oid = ANY (%s)"
_ALLOWED: Final = """
    SELECT p.name FROM unnest(ARRAY[
        'SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'
    ]) AS p (name) WHERE has_table_privilege(%s::oid, %s::oid, p.name)
"""
_DOORS: Final = """
    SELECT current_database() AS database, current_schema() AS schema,
        has_database_privilege(%(role)s::oid, current_database(), 'CONNECT') AS connect,
        has_schema_privilege(%(role)s::oid, current_schema(), 'USAGE') AS usage,
        has_schema_privilege(%(role)s::oid, current_schema(), 'CREATE') AS create
"""
_BOUND: Final = """
    SELECT bool_and(row_security_active(c.oid) AND NOT pg_has_role(c.relowner, 'MEMBER') AND (
        SELECT array_agg(p.polname::text) = ARRAY[%s::text] FROM pg_policy AS p WHERE p.polrelid = c.oid
    )) FROM pg_class AS c WHERE c.oid = ANY (%s)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Granted:
    """The tables of ours that a role was given, and those that were not there yet."""

    tables: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Doors:
    """The database and the schema of a connection, and whether a role may enter them, and make tables there."""

    database: str
    schema: str
    connect: bool
    usage: bool
    create: bool


def grant(connection: sa.Connection, role: str) -> Granted:
    """Bind a role to policies, and give it what the libraries need: in the caller's transaction, over and over again.

    The connection is that of the tables' owner. Raises `InvalidRequest` for a role that no policy would bind, or that
    may do more than it is given here, and for a connection of somebody else.
    """
    driver = _driver(connection)
    tables = _tables(driver)
    oids = [oid for oid, _ in tables.values()]
    if driver.execute(_IS_OWNER.encode(), (oids,)).fetchone() != (True,):
        _refuse("the URL must be that of the tables' owner, who alone may grant them", field="url")
    number = _judge(driver, role, oids)
    named = sql.Identifier(role)
    for name, (_, has_tenant) in tables.items():
        if has_tenant or name in _BESIDE:
            _protect(driver, name)
        _give(driver, sql.Identifier(name), PRIVILEGES[name], named)
    for name in _DRAWN.keys() & tables.keys():
        (sequence,) = driver.execute("SELECT pg_get_serial_sequence(%s, 'id')", (name,)).fetchall()[0]
        _give(driver, sql.SQL("SEQUENCE " + sequence), _DRAWN[name], named)  # quoted by the server
    _let_in(driver, number, named)
    for name, (oid, _) in tables.items():
        allowed = {row[0] for row in driver.execute(_ALLOWED.encode(), (number, oid))}
        if allowed != set(PRIVILEGES[name]):
            message = (
                f"role may do more with the table {name} than it is given, by PUBLIC or by another role: revoke that"
            )
            _refuse(message)
    return Granted(tables=tuple(tables), missing=tuple(sorted(PRIVILEGES.keys() - tables.keys())))


def bound(connection: sa.Connection) -> bool:
    """Tell whether policies bind who opened this connection: to one tenant, in every table that holds people's rows."""
    if connection.dialect.name != "postgresql":
        return False
    driver = _driver(connection)
    oids = [oid for name, (oid, has_tenant) in _tables(driver).items() if has_tenant or name in _BESIDE]
    return driver.execute(_BOUND.encode(), (POLICY, oids)).fetchone() == (True,)


def _driver(connection: sa.Connection) -> psycopg.Connection[Any]:
    """Give psycopg's own connection: it composes names into statements, and quotes them."""
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    return driver


def _tables(driver: psycopg.Connection[Any]) -> dict[str, tuple[int, bool]]:
    """Give the tables of ours that are there, each with its number and whether a tenant stands in it."""
    rows = driver.execute(_HERE.encode(), (sorted(PRIVILEGES),)).fetchall()
    return {name: (oid, has_tenant) for name, oid, has_tenant in rows}


def _judge(driver: psycopg.Connection[Any], role: str, oids: list[int]) -> int:
    """Give the number of a role; refuse one that is not there, or that policies would not bind for long."""
    asked = {"role": role, "tables": oids, "dangerous": _DANGEROUS}
    found = driver.execute(_ROLE.encode(), asked).fetchone()
    if found is None:
        _refuse("role must be one of this server: make it with CREATE ROLE ... LOGIN first")
    number, unbound, owns = found
    if unbound:
        message = (
            "role could read past every policy: it must be NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOREPLICATION,"
            " and no member of a role that is not or that reaches the server's files"
        )
        _refuse(message)
    if owns:
        message = (
            "role owns the tables, their schema or the database, or is a member of who does, and no policy binds an"
            " owner: make another role for applications"
        )
        _refuse(message)
    return int(number)


def _protect(driver: psycopg.Connection[Any], table: str) -> None:
    """Let a table show and take rows of the named tenant alone, whoever but its owner asks."""
    shown, taken = _BESIDE.get(table, (_OF_TENANT, _OF_TENANT))
    policy, name = sql.Identifier(POLICY), sql.Identifier(table)
    _do(driver, "DROP POLICY IF EXISTS {} ON {}", policy, name)
    _do(driver, f"CREATE POLICY {{}} ON {{}} USING ({shown}) WITH CHECK ({taken})", policy, name)
    _do(driver, "ALTER TABLE {} ENABLE ROW LEVEL SECURITY", name)


def _give(
    driver: psycopg.Connection[Any], thing: sql.Composable, privileges: tuple[str, ...], role: sql.Identifier
) -> None:
    """Give a role these privileges, and take back any other that it was given."""
    _do(driver, "REVOKE ALL ON {} FROM {}", thing, role)
    if privileges:
        _do(driver, f"GRANT {', '.join(privileges)} ON {{}} TO {{}}", thing, role)


def _let_in(driver: psycopg.Connection[Any], number: int, role: sql.Identifier) -> None:
    """Let a role into database and schema, where it may make nothing: what it made it would own."""
    doors = _doors(driver, number)
    if not doors.connect:
        _do(driver, "GRANT CONNECT ON DATABASE {} TO {}", sql.Identifier(doors.database), role)
    if not doors.usage:
        _do(driver, "GRANT USAGE ON SCHEMA {} TO {}", sql.Identifier(doors.schema), role)
    doors = _doors(driver, number)
    if doors.create:
        _refuse("role may make tables in this schema, and would own them: REVOKE CREATE ON SCHEMA ... FROM PUBLIC")
    if not (doors.connect and doors.usage):  # who owns neither only gets a warning from the server
        _refuse("role may not enter: let the database's owner GRANT CONNECT ON DATABASE and USAGE ON SCHEMA to it")


def _doors(driver: psycopg.Connection[Any], number: int) -> _Doors:
    with driver.cursor(row_factory=class_row(_Doors)) as cursor:
        return cursor.execute(_DOORS.encode(), {"role": number}).fetchall()[0]


def _do(driver: psycopg.Connection[Any], statement: str, *names: sql.Composable) -> None:
    driver.execute(sql.SQL(statement).format(*names))  # a text of ours, with places for names


def _refuse(message: str, field: str = "role") -> NoReturn:
    raise InvalidRequest(message, field=field)
