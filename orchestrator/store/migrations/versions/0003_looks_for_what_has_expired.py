"""Sources are asked from time to time what has expired in them.

Only a column is added: workers of the release before go on beside those of this one.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.get_bind().exec_driver_sql("ALTER TABLE adapter_health ADD COLUMN looked_at_us BIGINT")


def downgrade() -> None:
    """Refuse: an older release would not know what newer jobs rest on."""
    message = "A control database is not taken back to an older schema: restore a copy that was made before."
    raise NotImplementedError(message)
