"""Writing a new state directory: its configuration and keys, and nothing over what is there."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from pathlib import Path

import sqlalchemy as sa

from orchestrator import settings
from orchestrator.bootstrap import file_of, open_configured
from orchestrator.domain.errors import InvalidRequest
from orchestrator.gate.keyring import Keyring
from orchestrator.state_directory import databases, make_file, make_private
from orchestrator.store.tables import jobs

TEMPLATE = """\
# Configuration of this state directory. Every key can also be set as EXPUNGE_<SECTION>__<KEY>; the environment wins.
# Relative paths are below this directory. Secrets are named (file:, env:), never written here.

database_url = "sqlite:///orchestrator.db"
broker_url   = "filesystem://"
log_format   = "json"

[engine]
lease      = "2s"      # how long a dead worker's units wait; renewed every third of it while a call runs
quiet_time = "0s"      # between the last erase and the look that verifies

[deadline]
regime = "gdpr"        # one calendar month; ccpa = 45 days; custom = your `days`

[expiry]
every = "1h"           # how long what has expired may lie there; nobody is given it meanwhile

[report]
not_covered = []       # places that no adapter reaches; they stand in every report

[keys]
tombstone = "file:keys/tombstone.json"
reference = "file:keys/reference.key"
"""
SECTIONS = {
    "memory": """\
[adapters.memory]
required = true
require  = "physical"  # looked for in its files, too (texts of 16 bytes or more); logical: by reads alone
url      = "sqlite:///memory.db"
""",
    "vector": """\
[adapters.vector]                    # vectors of facts, memories and reports
required   = true
require    = "physical"
url        = "sqlite:///vectors.db"  # or a PostgreSQL with pgvector
dimensions = 384
""",
    "cache": """\
[adapters.cache]
required = true
require  = "logical"
url      = "redis://127.0.0.1:0/0"   # port 0: `expunge up` starts its own and writes the port here
prefix   = "cache"
""",
    "drafts": """\
[adapters.drafts]                    # checkpoints and reports; the url is that of [adapters.memory]
required = true
require  = "physical"
url      = "sqlite:///memory.db"
""",
    "backup": """\
[adapters.backup]                    # copies of the source database: forgotten in each, or waited for
required = true
require  = "logical"
manifest = "backups/manifest.json"   # elsewhere: make the folder, and `expunge backup take` before the first job
source   = "memory.db"               # the file of [adapters.memory]
""",
}
DEFAULT = ("memory", "cache")
"""What a new configuration enables where nobody says otherwise; the other sections stand in it as comments."""


def configuration(stores: Collection[str] = DEFAULT) -> str:
    """Give the text of a new configuration that enables these stores; raises `InvalidRequest` for one it knows not."""
    if unknown := sorted(set(stores) - SECTIONS.keys()):
        message = f"{unknown[0]} is none of {', '.join(SECTIONS)}: add its section to {settings.FILE} yourself"
        raise InvalidRequest(message, field="store")
    sections = [text if name in stores else _commented(text) for name, text in SECTIONS.items()]
    return "\n".join([TEMPLATE, *sections])


def _commented(section: str) -> str:
    return "".join(f"# {line}\n" for line in section.splitlines())


def initialise(directory: Path, stores: Collection[str] | None = None) -> list[Path]:
    """Write a state directory's configuration and keys; what is there stays. Give the files written.

    `stores` are those that a new configuration enables. Raises `InvalidRequest`, and writes nothing, where
    a configuration is there that says what is enabled, and where a key is missing beside a database in use.
    """
    content = configuration(DEFAULT if stores is None else stores)
    if stores is not None and (directory / settings.FILE).exists():
        message = f"{directory / settings.FILE} is there and says which stores are enabled: add the section to it"
        raise InvalidRequest(message, field="store")
    make_private(directory)
    config = settings.read(directory, template=content)
    keys = {
        directory / path: text
        for named, text in (
            (config.keys.tombstone, Keyring.create().dump()),
            (config.keys.reference, secrets.token_hex(32) + "\n"),
        )
        for kind, _, path in [named.partition(":")]
        if kind == "file"
    }
    lost = [path for path in keys if not path.exists()]
    if lost and (used := _in_use(config)):
        message = (
            f"{lost[0]} is missing, and {used} was made with it: restore the key file from your copy. Without it "
            "nobody can tell what was forgotten, so no write is allowed; a new beginning needs a new folder"
        )
        raise InvalidRequest(message, field="keys")
    written = []
    for path, text in {directory / settings.FILE: content, **keys}.items():
        if not path.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            make_file(path, text)
            written.append(path)
    return written


def used_store(config: settings.Settings) -> str | None:
    """Name a SQLite file that a store has used already: in the state directory, or where the configuration says."""
    stores = [settings.inside(str(o["url"]), config.state_dir) for o in config.adapters.values() if "url" in o]
    files = [file_of(sa.make_url(url)) for url in stores if url.startswith("sqlite:")]
    files += databases(config.state_dir)
    return next((file.name for file in files if file is not None and file.is_file() and file.stat().st_size), None)


def _in_use(config: settings.Settings) -> str | None:
    """Name a database that was used already, that of the jobs among them."""
    database = open_configured(config)
    own = file_of(database.url)
    used = used_store(config)
    if used is None and own is not None and own.is_file() and own.stat().st_size:
        used = own.name
    if used is None and database.dialect.name != "sqlite":
        with database.connect() as connection:
            if (
                sa.inspect(connection).has_table(jobs.name)
                and connection.execute(sa.select(jobs.c.id).limit(1)).first()
            ):
                used = "the control database"
    database.dispose()
    return used
