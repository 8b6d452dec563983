"""The tables of the source database: facts, preferences, candidates, the sources they came from, what was revoked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

SCHEMA_VERSION: Final = 5
USER_WIDE: Final = ""
"""What the project column holds for a fact of no project: a scope's project is never empty."""

KIND: Final = "fact"
"""What the targets of this store are."""

metadata = sa.MetaData()

# Both databases compare and order texts byte by byte, whatever language the server is set to.
_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def statements(dialect: sa.Dialect) -> Iterator[str]:
    """Give the statements that make the tables in an empty database."""
    yield from making(metadata.sorted_tables, dialect)
    yield _FIRST_EPOCH


def making(tables: Iterable[sa.Table], dialect: sa.Dialect) -> Iterator[str]:
    """Give the statements that make these tables and their indexes."""
    for table in tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in sorted(table.indexes, key=lambda i: str(i.name)):
            yield str(CreateIndex(index).compile(dialect=dialect))


def upgrade(dialect: sa.Dialect, version: int) -> Iterator[str]:
    """Give the statements that bring the tables of an earlier version up to this one; what they hold stays."""
    if version < 2:  # noqa: PLR2004 - the version that these came with
        yield from making([revocation_left], dialect)
        yield "DROP INDEX source_tombstones_job"
        for index in (_FACTS_OF_USER, _TOMBSTONES_OF_JOB):
            yield str(CreateIndex(index).compile(dialect=dialect))
    if version < 3:  # noqa: PLR2004 - as above
        yield from making([record_prints], dialect)
    if version < 4:  # noqa: PLR2004 - as above
        yield str(CreateIndex(_FACTS_EXPIRING).compile(dialect=dialect))
        yield from making([source_epoch], dialect)
        yield _FIRST_EPOCH
    if version < 5:  # noqa: PLR2004 - as above
        tables = (preference_events, erased_events, preferences, fact_candidates, source_reaches)
        yield from making(tables, dialect)
        yield "ALTER TABLE source_revocations ADD COLUMN repointed BIGINT NOT NULL DEFAULT 0"


def _text(name: str, *, key: bool = False, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, primary_key=key, nullable=null)


def _number(name: str, *, key: bool = False, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=null, autoincrement=False)


tenant_positions: Final = sa.Table("tenant_positions", metadata, _text("tenant", key=True), _number("position"))

accepted_sources: Final = sa.Table(
    "accepted_sources",
    metadata,
    _text("tenant", key=True),
    _text("source_id", key=True),
    _text("user_id"),
    _text("project"),
    _text("kind"),
    _number("position"),
    _number("accepted_at_us"),
    sa.UniqueConstraint("tenant", "position"),
    sa.Index("accepted_sources_owner", "tenant", "user_id", "project"),
)

source_ancestry: Final = sa.Table(
    "source_ancestry",
    metadata,
    _text("tenant", key=True),
    _text("source_id", key=True),
    _text("ancestor_id", key=True),
    sa.Index("source_ancestry_ancestor", "tenant", "ancestor_id", "source_id"),
)

facts: Final = sa.Table(
    "facts",
    metadata,
    _text("tenant", key=True),
    _text("user_id", key=True),
    _text("project", key=True),
    _text("key", key=True),
    _number("version", key=True),
    _text("fact_id"),  # the same for all versions of a key
    _text("value"),
    _text("source"),
    _number("confirmed"),
    sa.Column("expires", sa.Double, nullable=False),
    _number("active"),
    _text("state"),  # live, replaced, revoked
    sa.ForeignKeyConstraint(["tenant", "source"], ["accepted_sources.tenant", "accepted_sources.source_id"]),
    sa.Index(
        "facts_one_active",
        "tenant",
        "user_id",
        "project",
        "key",
        unique=True,
        sqlite_where=sa.text("active = 1"),
        postgresql_where=sa.text("active = 1"),
    ),
    sa.Index("facts_handle", "fact_id", "version", "tenant", unique=True),
    sa.Index("facts_source", "tenant", "source"),
)
# In the order in which find hands out its pages: each goes on where the last one ended.
_FACTS_OF_USER: Final = sa.Index(
    "facts_of_user", facts.c.tenant, facts.c.user_id, facts.c.fact_id, facts.c.version, facts.c.project
)

EXPIRES: Final = facts.c.expires < sa.literal_column("1e300", sa.Double())
"""Whether a fact ever expires: those that never do have infinity there, which no two databases spell alike."""
# Most facts never expire: a look for those that have does not read the others.
_FACTS_EXPIRING: Final = sa.Index("facts_expiring", facts.c.expires, sqlite_where=EXPIRES, postgresql_where=EXPIRES)

fact_revisions: Final = sa.Table(
    "fact_revisions",
    metadata,
    _text("tenant", key=True),
    _text("user_id", key=True),
    _text("project", key=True),
    _number("rev"),
)

# What users said that they prefer, in the order in which it was accepted: a position of the tenant each.
preference_events: Final = sa.Table(
    "preference_events",
    metadata,
    _text("tenant", key=True),
    _number("sequence", key=True),
    _text("handle"),
    _text("user_id"),
    _text("project"),
    _text("key"),
    _text("operation"),  # set, delete
    _text("value", null=True),  # null: a delete, or revoked
    _text("source"),
    _number("accepted_at_us"),
    _text("state"),  # live, revoked
    sa.ForeignKeyConstraint(["tenant", "source"], ["accepted_sources.tenant", "accepted_sources.source_id"]),
    sa.Index("preference_events_of_key", "tenant", "user_id", "project", "key", "sequence"),
    sa.Index("preference_events_handle", "tenant", "handle", unique=True),
    sa.Index("preference_events_source", "tenant", "source"),
)

# Of an event that was erased: that there was one of this key, under a keyed hash, so that no older answer comes back.
erased_events: Final = sa.Table(
    "erased_events", metadata, _text("tenant", key=True), _text("key_mac", key=True), _number("sequence", key=True)
)

# What holds now of each key: the event that was applied last.
preferences: Final = sa.Table(
    "preferences",
    metadata,
    _text("tenant", key=True),
    _text("user_id", key=True),
    _text("project", key=True),
    _text("key", key=True),
    _text("handle"),  # its event's
    _number("sequence"),
    _text("operation"),  # set, delete, erased
    _text("value", null=True),
    sa.Index("preferences_handle", "tenant", "handle"),
)

# What was proposed and holds only when it is accepted; whatever was decided keeps no value.
fact_candidates: Final = sa.Table(
    "fact_candidates",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("user_id"),
    _text("project"),
    _text("key"),
    _text("value", null=True),
    _text("source"),
    sa.Column("expires", sa.Double, nullable=False),
    _text("proposed_by"),
    _text("state"),  # pending, accepted, rejected, blocked
    _number("proposed_at_us"),
    _number("decided_at_us", null=True),
    _text("decided_by", null=True),  # a named rule, or confirmation
    _text("decided_in", null=True),  # the source that confirmed it
    _number("version", null=True),  # of the fact that it became
    sa.ForeignKeyConstraint(["tenant", "source"], ["accepted_sources.tenant", "accepted_sources.source_id"]),
    sa.Index("fact_candidates_of_user", "tenant", "user_id", "handle"),
    sa.Index("fact_candidates_source", "tenant", "source"),
)

# The highest version that an erased key ever had, under a keyed hash: no version is used twice.
fact_high_water: Final = sa.Table("fact_high_water", metadata, _text("key_mac", key=True), _number("version"))

source_tombstones: Final = sa.Table(
    "source_tombstones",
    metadata,
    _text("tenant", key=True),
    _text("key_id", key=True),
    _text("mac", key=True),
    _text("kind", key=True),
    _text("job", key=True),
    _number("cut_off"),
    sa.Index("source_tombstones_mac", "tenant", "mac"),
)
# In the order in which an answer of revoke hands them out.
_TOMBSTONES_OF_JOB: Final = sa.Index(
    "source_tombstones_of_job",
    *(source_tombstones.c[name] for name in ("job", "kind", "key_id", "mac", "cut_off")),
)

# Never purged: a late repeat of a job must not reach data that is fresh by then.
source_revocations: Final = sa.Table(
    "source_revocations",
    metadata,
    _text("job", key=True),
    _number("cut_off"),
    _number("revision"),
    _number("targets"),
    # Facts that another source had told as well, and that stay by that one.
    sa.Column("repointed", sa.BigInteger, nullable=False, server_default=sa.text("0")),
)

revocation_targets: Final = sa.Table(
    "revocation_targets",
    metadata,
    _text("job", key=True),
    _number("ordinal", key=True),
    _text("kind"),
    _text("handle"),
    _number("version"),
)

# Items that a hold covered when a job revoked the rest: they are revoked when they are free.
revocation_left: Final = sa.Table("revocation_left", metadata, _text("job", key=True), _text("fact_id", key=True))

# By which a scan of files looks for what a record held; gone when it is erased.
record_prints: Final = sa.Table(
    "record_prints",
    metadata,
    _text("tenant", key=True),
    _text("kind", key=True),
    _text("handle", key=True),
    _number("version", key=True),
    _number("roll", key=True),
    _text("mac", key=True),
)

# A statement of a user confirms a key once.
confirmations: Final = sa.Table(
    "confirmations", metadata, _text("tenant", key=True), _text("source_id", key=True), _text("key_mac", key=True)
)

# How far a statement was taken to reach, as the application read it: said once for each key, which is not told.
source_reaches: Final = sa.Table(
    "source_reaches",
    metadata,
    _text("tenant", key=True),
    _text("source_id", key=True),
    _text("key_mac", key=True),
    _text("reach"),  # answer, task, project, user
)

# One row. A database that was put back has an older one than the control database, and serves nothing.
source_epoch: Final = sa.Table("source_epoch", metadata, _number("epoch", key=True))
_FIRST_EPOCH: Final = "INSERT INTO source_epoch VALUES (1)"
