"""Roles of PostgreSQL: an owner that is no superuser, and one of an application, which policies bind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

import psycopg
import sqlalchemy as sa
from psycopg import sql

from adapters.drafts.schema import open_in as open_drafts
from adapters.memory import open_engine
from adapters.memory.chains.schema import bring_up_shared
from adapters.memory.engine import reading, writing
from adapters.memory.postgresql_rows import grant
from adapters.vector.engine import open_engine as open_index
from tests.postgres import Server, new_database

_EMPTIED = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname NOT LIKE '%\\_schema' AND relname <> 'source_epoch'
"""


def execute(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own."""
    with closing(psycopg.connect(url.replace("+psycopg", ""), autocommit=True)) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def named(url: str, kind: str) -> str:
    """Give the name of a role for the database of a URL alone: roles belong to the whole server."""
    return f"{kind}-{sa.make_url(url).database}"


def as_role(url: str, role: str) -> str:
    """Give a URL for another role; the server of the tests asks nobody for a password."""
    return sa.make_url(url).set(username=role).render_as_string(hide_password=False)


def owned(url: str) -> str:
    """Give a database to an owner who is no superuser, as an operator does; give the owner's URL."""
    owner, name = named(url, "owner"), sa.make_url(url).database
    execute(url, f'CREATE ROLE "{owner}" LOGIN', f'ALTER DATABASE "{name}" OWNER TO "{owner}"')
    return as_role(url, owner)


def application(url: str, options: str = "") -> str:
    """Make a role that was granted nothing yet; give its name."""
    role = named(url, "app")
    execute(url, f'CREATE ROLE "{role}" LOGIN {options}')
    return role


@contextmanager
def opened(url: str) -> Iterator[sa.Engine]:
    """Open a source database, and close it at the end."""
    engine = open_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def make_tables(url: str) -> None:
    """Make the tables of facts where there are none, or bring them up."""
    with opened(url) as engine, reading(engine):
        pass


def bind(url: str, role: str) -> None:
    """Make the tables of facts and memories where there are none, and bind a role to their policies."""
    with opened(url) as engine, writing(engine, ()) as connection:
        bring_up_shared(connection)
        grant(connection, role)


def emptied(running: Server) -> tuple[str, str]:
    """Give a database in which a role is bound, empty, by the URLs of its owner and of that role.

    It is one for all tests: to make each its own would take longer than they do.
    """
    owner, role = _shared(running)
    with closing(psycopg.connect(owner.replace("+psycopg", ""), autocommit=True)) as connection:
        tables = [sql.Identifier(name) for (name,) in connection.execute(_EMPTIED).fetchall()]
        # One transaction, whatever refers to what; a TRUNCATE would give each table a new file.
        gone = [sql.SQL("DELETE FROM {}").format(table) for table in tables]
        connection.execute(sql.SQL("; ").join([sql.SQL("SET LOCAL session_replication_role = replica"), *gone]))
        connection.execute("ALTER SEQUENCE memories_id_seq RESTART")
        connection.execute("ALTER SEQUENCE deletions_id_seq RESTART")
    return owner, role


def bound_url(url: str) -> str:
    """Give the URL of a new role that is bound to the policies of a database."""
    role = application(url)
    bind(url, role)
    return as_role(url, role)


@cache
def _shared(running: Server) -> tuple[str, str]:
    url = new_database(running)
    return url, bound_url(url)


def with_all_tables(url: str, owner: str) -> None:
    """Make every table that there may be in a source database: of facts, memories, drafts and points."""
    execute(url, "CREATE EXTENSION vector")  # only a superuser may add it
    with opened(owner) as engine:
        with writing(engine, ()) as connection:
            bring_up_shared(connection)
        open_drafts(engine)
    index = open_index(sa.make_url(owner), 3)
    with reading(index):
        pass
    index.dispose()
