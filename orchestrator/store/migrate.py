"""Bringing the control database to the schema of this release, step by step."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory


def upgrade(engine: sa.Engine) -> None:
    """Run every migration that has not run yet, all in one transaction; a second run changes nothing."""
    config = _config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def pending(engine: sa.Engine) -> bool:
    """Tell whether the database lacks a migration of this release."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() != newest()


def newest() -> str | None:
    """Name the newest migration of this release."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
