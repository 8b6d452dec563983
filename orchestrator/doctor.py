"""`expunge doctor`: each thing that a deployment rests on, looked at on its own and named."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import sqlalchemy as sa

from orchestrator import doctor_stores, settings
from orchestrator.bootstrap import Control, DatabaseMissing, context, open_control
from orchestrator.doctor_stores import Red
from orchestrator.domain.errors import ExpungeError
from orchestrator.state_directory import readable_by_others
from orchestrator.store import engine, migrate
from orchestrator.store.clock import read_now
from orchestrator.store.tables import tombstones
from orchestrator.unusable import advice

NEEDED_BYTES: Final = 256 * 1024 * 1024
CLOCK_SECONDS: Final = 2.0
OUR_IMPORTS: Final = ("orchestrator", "adapters", "workers")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the doctor's answer."""

    name: str
    ok: bool
    detail: str


def examine(directory: Path) -> list[Check]:
    """Look at everything; what cannot be looked at because an earlier line is red is red too."""
    try:
        control = open_control(directory, create=False)
    except DatabaseMissing as error:
        return [Check(name="database", ok=False, detail=str(error))]
    except ExpungeError as error:
        return [Check(name="configuration", ok=False, detail=str(error))]
    try:
        lines: dict[str, Callable[[Control], str]] = {
            "configuration": _configuration,
            "permissions": _permissions,
            "keyring": _keyring,
            "database": _database,
            "pragmas": _pragmas,
            "broker": _broker,
            "adapters": doctor_stores.answer,
            "source database": doctor_stores.one_source,
            "import names": _import_names,
            "clock": _clock,
            "free space": _free_space,
        }
        return [_look(name, line, control) for name, line in lines.items()]
    finally:
        control.close()


def _look(name: str, line: Callable[[Control], str], control: Control) -> Check:
    try:
        return Check(name=name, ok=True, detail=line(control))
    except ExpungeError as error:
        return Check(name=name, ok=False, detail=str(error))
    except (OSError, sa.exc.SQLAlchemyError) as error:
        # The text of a driver's error may hold values; its type is enough to look further.
        said = advice(error) if isinstance(error, sa.exc.DBAPIError) else getattr(error, "strerror", None)
        return Check(name=name, ok=False, detail=said or type(error).__name__)


def _configuration(control: Control) -> str:
    if control.settings.crash_at is not None:
        message = "EXPUNGE_CRASH_AT is set: this process kills itself; unset it outside tests"
        raise Red(message)
    return str(control.settings.state_dir / settings.FILE)


def _permissions(control: Control) -> str:
    if opened := readable_by_others(control.settings.state_dir) + doctor_stores.open_files(control.settings):
        message = f"others may read {', '.join(map(str, opened))}: run chmod go-rwx on each"
        raise Red(message)
    return "closed to others"


def _keyring(control: Control) -> str:
    keyring = context(control).gate.keyring
    there = sa.inspect(control.database).has_table(tombstones.name)
    if lost := set(control.ledger.tombstone_keys() if there else ()) - keyring.key_ids:
        message = (
            f"there are tombstones under {', '.join(sorted(lost))}, which the keyring lacks: restore the keyring that "
            "they were made with; until then their tenants can store nothing"
        )
        raise Red(message)
    return f"current key {keyring.current}, check values match"


def _database(control: Control) -> str:
    if migrate.pending(control.database):
        message = "the schema is not that of this release: run `expunge migrate`"
        raise Red(message)
    return f"{control.database.dialect.name}, schema {migrate.newest()}"


def _pragmas(control: Control) -> str:
    if control.database.dialect.name != "sqlite":
        return "not needed on this database"
    found = engine.pragmas(control.database)
    wrong = [name for name, (_, expected) in engine.PRAGMAS.items() if found[name] != expected]
    if wrong:
        message = f"not as required: {', '.join(wrong)}"
        raise Red(message)
    return ", ".join(f"{name}={value}" for name, value in found.items())


def _broker(control: Control) -> str:
    scheme = urlsplit(control.settings.broker_url.get_secret_value()).scheme
    if scheme == "filesystem":
        folder = control.settings.state_dir / "broker"
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return "filesystem, folder is writable"
    from kombu.connection import Connection  # noqa: PLC0415 - loads only where a network broker is configured
    from kombu.exceptions import OperationalError  # noqa: PLC0415

    url = control.settings.broker_url.get_secret_value()
    try:
        with Connection(url, connect_timeout=3) as connection:  # type: ignore[no-untyped-call] # Celery's edge
            connection.ensure_connection(max_retries=1, timeout=3)
    except (OperationalError, ValueError, ImportError):
        message = f"the {scheme} broker does not answer: is it running, is broker_url right?"
        raise Red(message) from None
    return f"{scheme}, answers"


def _import_names(_control: Control) -> str:
    owners = packages_distributions()
    for name in OUR_IMPORTS:
        found = set(owners.get(name, []))
        if others := found - {"expunge"}:
            message = (
                f"the import name {name} also belongs to {', '.join(sorted(others))}: use an environment of its own"
            )
            raise Red(message)
        if not found and not _runs_from_its_folder(name):
            message = f"nobody owns the import name {name}: install Expunge into this environment, by pip"
            raise Red(message)
    return "ours alone"


def _runs_from_its_folder(name: str) -> bool:
    """Tell whether an editable installation of ours gives a name: it lists no modules and points to a folder."""
    try:
        told = json.loads(distribution("expunge").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return False
    spec = find_spec(name)
    if spec is None or not told.get("dir_info", {}).get("editable"):
        return False
    folder = Path(url2pathname(urlsplit(told["url"]).path)).resolve()
    return any(Path(place).resolve().parent == folder for place in spec.submodule_search_locations or [])


def _clock(control: Control) -> str:
    """Hold the database's clock against ours: leases use the one, deadlines the other."""
    with control.database.begin() as connection:
        theirs = read_now(connection)
    apart = abs(control.clock.now() - datetime.fromtimestamp(theirs / 1e6, UTC)).total_seconds()
    if apart > CLOCK_SECONDS:
        message = f"the database's clock is {apart:.1f} s away from this machine's: synchronise them"
        raise Red(message)
    return f"{apart:.3f} s apart"


def _free_space(control: Control) -> str:
    free = shutil.disk_usage(control.settings.state_dir).free
    if free < NEEDED_BYTES:
        message = f"{free // 2**20} MiB free, {NEEDED_BYTES // 2**20} MiB needed"
        raise Red(message)
    return f"{free // 2**20} MiB"
