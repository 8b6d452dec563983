"""What to do about a control database that cannot be used: a sentence by the driver's code, never by its text."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

_OTHER_SCHEMA: Final = ("no such table", "no such column", "has no column named")  # SQLite says it in words
_OTHER_SCHEMA_STATES: Final = {"42P01", "42703"}  # PostgreSQL by code
_ADVICE: Final = {
    "SQLITE_NOTADB": "its file is no database: restore it from a backup, or correct database_url",
    "SQLITE_CORRUPT": "its file is damaged: restore it from a backup",
    "SQLITE_READONLY": "it cannot be written: give the user of this process write access to its file and folder",
    "SQLITE_FULL": "its disk is full: make room",
    "SQLITE_BUSY": "another process holds it: try again",
}


def advice(error: sa.exc.DBAPIError) -> str | None:
    """Say what to do about a database that cannot be used; None where we have used it wrongly."""
    cause = error.orig
    state = getattr(cause, "sqlstate", None)
    if state in _OTHER_SCHEMA_STATES or any(words in str(cause) for words in _OTHER_SCHEMA):
        return "the control database has not the schema of this release: run `expunge migrate`"
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or type(error) is sa.exc.DatabaseError:
        code = getattr(cause, "sqlite_errorname", None) or state or type(cause).__name__
        # The extended codes of SQLite begin with the code that they belong to.
        said = next((text for name, text in _ADVICE.items() if code.startswith(name)), None)
        what = said or "is database_url right? `expunge doctor` looks further"
        return f"the control database cannot be reached ({code}): {what}"
    return None
