"""What an operator may set for the backups."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator import InvalidRequest

NAME: Final = "backup"


class Options(BaseModel):
    """The options of the backup adapter. Relative paths are below the state directory."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    manifest: Path = Field(default=Path("backups/manifest.json"), description="the manifest; copies lie in its folder")
    source: Path = Field(default=Path("memory.db"), description="SQLite file of the source database")


def read(options: dict[str, object], state_dir: Path) -> Options:
    """Check the options and give absolute paths; a wrong one raises `InvalidRequest` that names it."""
    try:
        chosen = Options.model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors(include_input=False)}))
        message = f"adapter {NAME}: option {wrong} is not valid (allowed: {', '.join(Options.model_fields)})"
        raise InvalidRequest(message, field=f"adapters.{NAME}.{wrong}") from None
    home = state_dir.resolve()
    return Options(manifest=home / chosen.manifest, source=home / chosen.source)
