"""The control database's first schema.

Revision ID: 0001
Revises:
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table, then the triggers of the database at hand."""
    connection = op.get_bind()
    for part in ("tables", connection.dialect.name):
        text = (Path(__file__).parent / f"0001_{part}.sql").read_text()
        for statement in statements(text):
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse: an older release would not know what newer jobs rest on."""
    message = "A control database is not taken back to an older schema: restore a copy that was made before."
    raise NotImplementedError(message)


def statements(text: str) -> list[str]:
    """Split a script at the lines that end a statement; bodies of triggers and functions stay whole."""
    found, lines, inside = [], [], False
    for line in text.splitlines():
        code = line.split("--")[0].rstrip()
        if not code:
            continue
        lines.append(code)
        inside = inside or "$$ BEGIN" in code or code.lstrip().startswith("BEGIN")
        if "END $$" in code or code.endswith("END;"):
            inside = False
        if code.endswith(";") and not inside:
            found.append("\n".join(lines).rstrip(";") if not code.endswith("END;") else "\n".join(lines))
            lines = []
    return found
