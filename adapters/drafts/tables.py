"""The tables of drafting, in the source database: jobs, the texts that they made, and what each was made from."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

VERSION: Final = 1

metadata = sa.MetaData()

# Both databases compare and order texts byte by byte, whatever language the server is set to.
_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str, *, key: bool = False, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, primary_key=key, nullable=null)


def _number(name: str, *, key: bool = False, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=null, autoincrement=False)


# It stays when what it made is erased, and holds no text: a name, numbers, and where it stands.
draft_jobs: Final = sa.Table(
    "draft_jobs",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("user_id"),
    _text("project"),
    _text("name"),  # the id under which it was submitted
    _text("state"),  # open, published, failed
    _number("memory_rev"),
    sa.Column("memory_expires", sa.Double),  # seconds since 1970; null: never
    _number("position"),  # of the tenant's latest source when it was submitted
    _text("lease_owner", null=True),
    _number("lease_until_us", null=True),
    sa.UniqueConstraint("tenant", "user_id", "project", "name"),
)

# Checkpoints and reports. Each names its owner itself: it is found though its job's row is gone.
drafts: Final = sa.Table(
    "drafts",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("job"),  # its handle
    _text("user_id"),
    _text("project"),
    _text("step"),
    _number("position"),  # its job's
    _text("text"),
    sa.UniqueConstraint("tenant", "job", "step"),
    sa.Index("drafts_of_user", "tenant", "user_id", "handle"),
)

# What a job, or a draft, was made from: records and other drafts, all the way down.
draft_used: Final = sa.Table(
    "draft_used",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("kind", key=True),
    _text("id", key=True),
    _number("version", key=True),
    sa.Index("draft_used_origin", "tenant", "kind", "id", "handle", "version"),
)

# The database is shared, so its user_version is somebody else's.
draft_schema: Final = sa.Table("draft_schema", metadata, _number("version"))
