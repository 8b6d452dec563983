"""What an operator may set for the backups."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import Field

from orchestrator.options import AdapterOptions

NAME: Final = "backup"


class Options(AdapterOptions):
    """The options of the backup adapter. Relative paths are below the state directory."""

    manifest: Path = Field(default=Path("backups/manifest.json"), description="the manifest; copies lie in its folder")
    source: Path = Field(default=Path("memory.db"), description="SQLite file of the source database")


def read(options: dict[str, object], state_dir: Path) -> Options:
    """Check the options and give absolute paths; a wrong one raises `InvalidRequest` that names it."""
    chosen, home = Options.read(NAME, options), state_dir.resolve()
    return Options(manifest=home / chosen.manifest, source=home / chosen.source)
