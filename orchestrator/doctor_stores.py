"""The doctor's lines about stores: whether each answers, whether three of them mean one database, whose files are open.

A URL holds a password: no line repeats one, and options are named instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from orchestrator import settings
from orchestrator.bootstrap import Control, file_of, open_engine
from orchestrator.domain.contract import EraseOrder
from orchestrator.domain.errors import ErasureError, ExpungeError, Transient
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.embedded import STARTING, starting
from orchestrator.registry import resolve
from orchestrator.state_directory import open_to_others

SOURCE_URL: Final = "sqlite:///memory.db"
SOURCE_FILE: Final = "memory.db"
COPIES: Final = "backups/manifest.json"
"""What these options are where the configuration leaves them out."""
SIDECARS: Final = ("", "-wal", "-shm", "-journal")


class Red(ExpungeError):
    """A line of the doctor is red."""


def answer(control: Control) -> str:
    """Open each enabled adapter and have it look for a scope that nobody has.

    A service that `expunge up` has begun to start within the last seconds is told as starting; any other store that
    does not answer raises `Red`.
    """
    if not control.settings.adapters:
        message = "no adapter is enabled: add an [adapters.NAME] section"
        raise Red(message)
    order = EraseOrder(
        job=uuid.uuid4(),
        unit=uuid.uuid4(),
        key="doctor",
        scope=Scope(tenant="expunge-doctor", user="expunge-doctor"),
        selector=Selector(kind=SelectorKind.KEY, value="expunge-doctor"),
        deadline=control.clock.now() + timedelta(seconds=10),
    )
    opened = open_engine(control).adapters
    told, coming = [], []
    try:
        for name, adapter in opened.items():
            try:
                adapter.find([order])
            except ErasureError as error:
                if not isinstance(error, Transient) or name not in starting(control.settings):
                    message = f"{name}: {error} ({error.code})"
                    raise Red(message) from None
                coming.append(name)
            else:
                registered = resolve([name])[name]
                told.append(f"{name} ({registered.distribution} {registered.version})")
    finally:
        for adapter in opened.values():
            adapter.close()
    lines = [f"{', '.join(told)}: answer"] if told else []
    if coming:
        lines.append(f"starting: {', '.join(coming)}; `expunge up` began less than {STARTING:.0f} s ago")
    return "; ".join(lines)


def one_source(control: Control) -> str:
    """Hold [adapters.drafts] url and [adapters.backup] source against [adapters.memory] url; raises `Red`.

    The three mean one database. Who is named to enter it may differ.
    """
    sections, home = control.settings.adapters, control.settings.state_dir
    if "memory" not in sections:
        return "not needed without [adapters.memory]"
    source = _place(str(sections["memory"].get("url", SOURCE_URL)), home)
    compared = []
    if "drafts" in sections:
        compared.append(("[adapters.drafts] url", _place(str(sections["drafts"].get("url", SOURCE_URL)), home)))
    if "backup" in sections:
        file = home / str(sections["backup"].get("source", SOURCE_FILE))
        compared.append(("[adapters.backup] source", ("sqlite", str(file.resolve()))))
    for option, place in compared:
        if place != source:
            message = (
                f"{option} and [adapters.memory] url name two databases: set both to the one where the facts are, or "
                "this store erases in a place that nobody uses"
            )
            raise Red(message)
    return f"{', '.join(option for option, _ in compared) or '[adapters.memory] url'}: one database"


def open_files(config: settings.Settings) -> list[Path]:
    """Name the databases and copies outside of the state directory whose mode lets others in."""
    files = [path.with_name(path.name + end) for path in _databases(config) for end in SIDECARS]
    if "backup" in config.adapters:
        folder = (config.state_dir / str(config.adapters["backup"].get("manifest", COPIES))).parent
        files += [folder, *sorted(folder.glob("*"))]
    home = config.state_dir.resolve()
    return open_to_others(path for path in files if not path.resolve().is_relative_to(home))


def _databases(config: settings.Settings) -> Iterator[Path]:
    urls = [config.database_url.get_secret_value()]
    urls += [str(options["url"]) for options in config.adapters.values() if "url" in options]
    for url in urls:
        try:
            file = file_of(sa.make_url(settings.inside(url, config.state_dir)))
        except (sa.exc.ArgumentError, ValueError):
            continue  # not one of SQLAlchemy's; its adapter says what is wrong with it
        if file is not None:
            yield file
    if "backup" in config.adapters:
        yield config.state_dir / str(config.adapters["backup"].get("source", SOURCE_FILE))


def _place(text: str, home: Path) -> tuple[Any, ...]:
    """Give what tells one database from another: a file, or a server and a name; never who enters, or by which key."""
    try:
        url = sa.make_url(settings.inside(text, home))
    except (sa.exc.ArgumentError, ValueError):
        return (text,)  # not one that opens: the line of the adapters says so
    file = file_of(url)
    if file is not None:
        return ("sqlite", str(file.resolve()))
    asked: Mapping[str, Any] = url.query
    return (url.get_backend_name(), url.host or asked.get("host"), url.port or asked.get("port", 5432), url.database)
