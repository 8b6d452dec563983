"""Passes and rounds have no bound: stores are looked through until nothing new is found, and a person may ask for more.

Only what columns may hold changes: workers of the release before go on beside those of this one.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_PASSES = ("find_pass", "CHECK (find_pass BETWEEN 0 AND 2)", "CHECK (find_pass >= 0)")
_ROUNDS = ("round", "CHECK (round BETWEEN 1 AND 5)", "CHECK (round >= 1)")
_WIDER = {"deletion_targets": _PASSES, "deletion_units": _PASSES, "deletion_jobs": _ROUNDS}


def upgrade() -> None:
    """Replace the bounds; the rows stay where they are."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table, (column, _, after) in _WIDER.items():
            name = f"{table}_{column}_check"
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {after}")
        return
    # SQLite cannot alter a constraint. A wider one asks nothing of the rows, so the text of the table is all there is
    # to change; a higher schema version makes every open connection read it anew.
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    changed = sum(
        connection.exec_driver_sql(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ? AND instr(sql, ?) > 0",
            (before, after, table, before),
        ).rowcount
        for table, (_, before, after) in _WIDER.items()
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1:d}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
    if changed != len(_WIDER):
        message = "the tables are not those of revision 0003"
        raise RuntimeError(message)


def downgrade() -> None:
    """Refuse: an older release would not know what newer jobs rest on."""
    message = "A control database is not taken back to an older schema: restore a copy that was made before."
    raise NotImplementedError(message)
