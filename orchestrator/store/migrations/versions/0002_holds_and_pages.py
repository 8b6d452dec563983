"""Holds are enforced, and a unit names the page of targets that it looks from.

Only columns and indexes are added: workers of the release before go on beside those of this one.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # Until when a call that was made under the last claim may still act; NULL when it has answered.
    "ALTER TABLE deletion_units ADD COLUMN deadline_us BIGINT",
    "ALTER TABLE deletion_units ADD COLUMN known_adapter TEXT",
    # Whose turn it is, without a join. Workers of the release before leave it empty, which is a turn of its own.
    "ALTER TABLE deletion_units ADD COLUMN tenant TEXT NOT NULL DEFAULT ''",
    "UPDATE deletion_units SET tenant = (SELECT j.tenant FROM deletion_jobs j WHERE j.id = deletion_units.job_id)",
    "DROP INDEX ix_units_claim",
    (
        "CREATE INDEX ix_units_turn ON deletion_units (adapter, phase, tenant, next_attempt_at_us, id) "
        "WHERE status = 'pending'"
    ),
    (
        "CREATE INDEX ix_units_again ON deletion_units (adapter, phase, next_attempt_at_us, id) "
        "WHERE status = 'pending' AND attempts > 0"
    ),
    "CREATE INDEX ix_units_acting ON deletion_units (job_id) WHERE deadline_us IS NOT NULL",
    "CREATE INDEX ix_targets_first_pass ON deletion_targets (job_id, round) WHERE find_pass = 1",
    "DROP INDEX ix_targets_page",
    "CREATE INDEX ix_targets_page ON deletion_targets (job_id, round, adapter, page, find_pass)",
)
_POSTGRESQL = (
    "CREATE TRIGGER receipts_no_truncate BEFORE TRUNCATE ON deletion_receipts EXECUTE FUNCTION refuse()",
    "CREATE TRIGGER transitions_no_truncate BEFORE TRUNCATE ON job_transitions EXECUTE FUNCTION refuse()",
)
_PAGES = sa.text(
    "SELECT DISTINCT adapter, page FROM deletion_targets "
    "WHERE job_id = :job AND round = :round AND find_pass = :found ORDER BY adapter, page"
)
_WAITING = sa.text(
    "SELECT id, job_id, phase, page, round, find_pass FROM deletion_units "
    "WHERE status <> 'done' AND (phase = 'verify' OR (phase = 'find' AND find_pass > 0)) ORDER BY id"
)
_LOOK_FROM = sa.text("UPDATE deletion_units SET known_adapter = :adapter, known_page = :page WHERE id = :unit")


def upgrade() -> None:
    """Add the columns, and tell units in flight where to look from: find begins again with the first page."""
    connection = op.get_bind()
    own = _POSTGRESQL if connection.dialect.name == "postgresql" else ()
    for statement in (*_STATEMENTS, *own):
        connection.exec_driver_sql(statement)
    for unit in connection.execute(_WAITING).all():
        found = unit.find_pass - 1 if unit.phase == "find" else 0
        pages = connection.execute(_PAGES, {"job": unit.job_id, "round": unit.round, "found": found}).all()
        place = 0 if unit.phase == "find" else unit.page
        if place < len(pages):
            connection.execute(
                _LOOK_FROM, {"adapter": pages[place].adapter, "page": pages[place].page, "unit": unit.id}
            )


def downgrade() -> None:
    """Refuse: an older release would not know what newer jobs rest on."""
    message = "A control database is not taken back to an older schema: restore a copy that was made before."
    raise NotImplementedError(message)
