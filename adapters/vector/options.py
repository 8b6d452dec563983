"""What an operator may set for the vector index."""

from __future__ import annotations

from typing import Final

from pydantic import Field, SecretStr

from orchestrator.options import AdapterOptions

NAME: Final = "vector"
MAX_DIMENSIONS: Final = 2_000
"""More than that the graph of PostgreSQL does not take."""


class Options(AdapterOptions):
    """The options of the vector adapter."""

    url: SecretStr = Field(
        default=SecretStr("sqlite:///vectors.db"), description="SQLite file, or URL of a PostgreSQL with pgvector"
    )
    dimensions: int = Field(default=384, ge=1, le=MAX_DIMENSIONS, description="numbers in each vector")


def read(options: dict[str, object]) -> Options:
    """Check the options; a wrong one raises `InvalidRequest` that names it and what is allowed."""
    return Options.read(NAME, options)
