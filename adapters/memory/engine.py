"""Opening the source database, a SQLite file or PostgreSQL, and the two kinds of transactions on it.

What differs between the two lies in `sqlite` and `postgresql`; nothing else knows which one it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa

from adapters.memory import sqlite
from adapters.memory.epoch import Epoch
from orchestrator import InvalidRequest, Residual, StoreLocked

BUSY_MS: Final = sqlite.BUSY_MS
_WANTED: Final = "url must name a SQLite file or a PostgreSQL database: sqlite:///path, postgresql://host/database"
_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


class Database(Protocol):
    """What a module of a database does for the engine."""

    @property
    def READING(self) -> Mapping[str, Any]:  # noqa: N802 - a constant of the module
        """Options of a transaction that reads."""

    @property
    def WRITING(self) -> Mapping[str, Any]:  # noqa: N802 - a constant of the module
        """Options of a transaction that writes."""

    @property
    def RESIDUALS(self) -> frozenset[Residual]:  # noqa: N802 - a constant of the module
        """What is left after a row was erased."""

    @property
    def DRIVER_ERROR(self) -> type[Exception]:  # noqa: N802 - a constant of the module
        """What its driver raises."""

    def create_engine(self, url: sa.URL) -> sa.Engine:
        """Give an engine that opens nothing yet."""

    def prepare(self, driver: Any) -> None:  # noqa: ANN401 - the driver's own connection
        """Set a new connection up, and make the tables where there are none."""

    def begin(self, connection: sa.Connection, wait_ms: int) -> None:
        """Begin a transaction, or set its limits and, from the option `tenants`, whose rows it is about."""

    def lock(self, connection: sa.Connection, tenants: Collection[str]) -> None:
        """Keep other writers of these tenants out until the transaction ends."""

    def empty_log(self, engine: sa.Engine) -> bool:
        """Empty the log that still holds what was overwritten; False where that has to wait."""

    def translate(self, error: BaseException | None) -> Exception:
        """Choose the error of the contract for one of the driver's."""


def parse(url: str | sa.URL, home: Path = Path()) -> sa.URL:
    """Give a URL with its driver, a file without a full path below `home`.

    Raises `InvalidRequest` for anything else, and repeats nothing of it.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidRequest(_WANTED, field="url") from None
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None or parsed.database in {None, "", ":memory:"}:
        raise InvalidRequest(_WANTED, field="url")
    file = str(home.resolve() / str(parsed.database)) if parsed.get_backend_name() == "sqlite" else None
    return parsed.set(drivername=driver, database=file)


def database_of(bound: sa.Engine | sa.URL) -> Database:
    """Give what knows the database of an engine or URL."""
    name = bound.get_backend_name() if isinstance(bound, sa.URL) else bound.dialect.name
    if name == "sqlite":
        return sqlite
    from adapters.memory import postgresql  # noqa: PLC0415 - its driver loads only where it is used

    return postgresql


def open_engine(url: str | sa.URL, epoch: Epoch | None = None) -> sa.Engine:
    """Give an engine; the file, where it is one, and the tables are made by the first connection.

    With an `epoch`, no transaction begins in a database that was put back without its tombstones.
    """
    parsed = parse(url)
    database = database_of(parsed)
    engine = database.create_engine(parsed)

    def prepare(driver: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection
        try:
            database.prepare(driver)
        except BaseException:
            driver.close()
            raise

    def begin(connection: sa.Connection) -> None:
        database.begin(connection, int(connection.get_execution_options().get("wait_ms", BUSY_MS)))
        if epoch is not None and not connection.get_execution_options().get("any_epoch", False):
            epoch.check(connection)

    sa.event.listen(engine, "connect", prepare)
    sa.event.listen(engine, "begin", begin)
    return engine


@contextmanager
def writing(
    engine: sa.Engine, tenants: Collection[str], *, wait_ms: int = BUSY_MS, call_ms: int = 0, any_epoch: bool = False
) -> Iterator[sa.Connection]:
    """Open one write transaction: nobody else writes data of these tenants from its first line to its last.

    A lock is waited for no longer than `wait_ms`; one statement may take `call_ms`, if that is more. `any_epoch` is for
    what brings a restored database up to date.
    """
    database = database_of(engine)
    limits = {"wait_ms": wait_ms, "call_ms": call_ms, "any_epoch": any_epoch, "tenants": tenants}
    with translated(database), engine.connect() as connection:
        connection.execution_options(**limits, **database.WRITING)
        with connection.begin():
            database.lock(connection, tenants)
            yield connection


@contextmanager
def reading(engine: sa.Engine, tenants: Collection[str] = (), *, wait_ms: int = BUSY_MS) -> Iterator[sa.Connection]:
    """Open one transaction that reads a single state and keeps no writer waiting.

    `tenants` are those whose rows are asked for: a role that row-level security binds sees one tenant's, and raises
    `Permanent` where it asks for rows of none or of more.
    """
    database = database_of(engine)
    with translated(database), engine.connect() as connection:
        connection.execution_options(wait_ms=wait_ms, tenants=tenants, **database.READING)
        with connection.begin():
            yield connection


def checkpoint(engine: sa.Engine) -> bool:
    """Empty the log that still holds what was overwritten, where the store can; False while others use it."""
    database = database_of(engine)
    try:
        with translated(database):
            return database.empty_log(engine)
    except StoreLocked:
        return False


@contextmanager
def translated(database: Database) -> Iterator[None]:
    """Turn the driver's errors into ours; they may quote a value, so they are not chained."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise database.translate(error.orig) from None
    except sa.exc.TimeoutError:
        raise StoreLocked from None
    except database.DRIVER_ERROR as error:
        raise database.translate(error) from None
