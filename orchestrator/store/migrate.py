"""Bringing the control database to the schema of this release, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(engine: sa.Engine) -> None:
    """Run every migration that has not run yet, all in one transaction; a second run changes nothing."""
    from alembic import command  # noqa: PLC0415 - Alembic takes half a second to load, and few commands need it

    config = _config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def pending(engine: sa.Engine) -> bool:
    """Tell whether the database lacks a migration of this release."""
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() != newest()


def newest() -> str | None:
    """Name the newest migration of this release."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config
