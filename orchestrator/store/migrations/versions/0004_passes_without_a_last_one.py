"""Stores are looked through until a pass finds nothing new: how many passes there are has no bound.

Only what a column may hold changes: workers of the release before go on beside those of this one.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("deletion_targets", "deletion_units")
_BEFORE, _AFTER = "CHECK (find_pass BETWEEN 0 AND 2)", "CHECK (find_pass >= 0)"


def upgrade() -> None:
    """Replace the bound in both tables; their rows stay where they are."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table in _TABLES:
            name = f"{table}_find_pass_check"
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {_AFTER}")
        return
    # SQLite cannot alter a constraint. A wider one asks nothing of the rows, so the text of the table is all there is
    # to change; a higher schema version makes every open connection read it anew.
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    changed = connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) "
        "WHERE type = 'table' AND name IN (?, ?) AND instr(sql, ?) > 0",
        (_BEFORE, _AFTER, *_TABLES, _BEFORE),
    ).rowcount
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1:d}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
    if changed != len(_TABLES):
        message = "the tables are not those of revision 0003"
        raise RuntimeError(message)


def downgrade() -> None:
    """Refuse: an older release would not know what newer jobs rest on."""
    message = "A control database is not taken back to an older schema: restore a copy that was made before."
    raise NotImplementedError(message)
