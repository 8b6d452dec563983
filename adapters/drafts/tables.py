"""The tables of drafting, in the source database: jobs, their texts and what each was made from, and approvals."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

VERSION: Final = 2

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
    _text("state"),  # open, published, failed, cancelled
    _number("memory_rev"),
    sa.Column("memory_expires", sa.Double),  # seconds since 1970; null: never
    _number("position"),  # of the tenant's latest source when it was submitted
    _text("lease_owner", null=True),
    _number("lease_until_us", null=True),
    sa.UniqueConstraint("tenant", "user_id", "project", "name"),
)

# Checkpoints, reports, and what waits for approval. Each names its owner itself: it is found though its job's row is
# gone.
drafts: Final = sa.Table(
    "drafts",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("job"),  # its handle, or that of an approval
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

# What a step of a job was said to use; a step without a row here depends on the whole scope.
step_dependencies: Final = sa.Table(
    "step_dependencies",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),  # of the job
    _text("step", key=True),
    _text("kind", key=True),
    _text("id", key=True),
    _number("version", key=True),
)

# It stays when its payload is erased, and holds no text: names that are ids, numbers, and where it stands.
approvals: Final = sa.Table(
    "approvals",
    metadata,
    _text("tenant", key=True),
    _text("handle", key=True),
    _text("user_id"),
    _text("project"),
    _text("name"),  # the id under which it was asked for
    _text("action"),
    _text("job"),  # the handle of the job whose report it is about
    _text("state"),  # pending, approved, refused, dispatched, void
    _number("memory_rev"),
    sa.Column("memory_expires", sa.Double),  # as of a job
    _text("payload_mac"),
    _text("operation_key"),
    _text("receipt", null=True),
    _number("position"),  # its report's
    _number("decided_at_us", null=True),
    _number("dispatched_at_us", null=True),
    _number("lease_until_us", null=True),  # until then whoever marked it is sending
    sa.UniqueConstraint("tenant", "user_id", "project", "name"),
    sa.UniqueConstraint("tenant", "operation_key"),
    sa.Index("approvals_of_job", "tenant", "job"),
)

# The database is shared, so its user_version is somebody else's.
draft_schema: Final = sa.Table("draft_schema", metadata, _number("version"))
