"""What an operator may set for the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from orchestrator.options import AdapterOptions

NAME: Final = "cache"
DEFAULT_URL: Final = "redis://127.0.0.1:0/0"
KINDS: Final = frozenset(
    {
        "fact",
        "memory",
        "event",
        "candidate",
        "checkpoint",
        "report",
        "input",
        "approval",
        "point",
        "cache_key",
    }
)
"""Kinds of records that the stores of this distribution have."""
WANTED: Final = "redis://HOST:PORT/DB or rediss://HOST:PORT/DB; port 0 is the embedded server's"


class Options(AdapterOptions):
    """The options of the cache adapter."""

    url: str = Field(default=DEFAULT_URL, repr=False, description=WANTED)
    prefix: str = Field(default=NAME, pattern=r"^[a-z0-9-]{1,32}\z", description="first part of every key")
    timeout: float | None = Field(default=None, gt=0, description="seconds to wait for Redis; else engine.call_timeout")
    other_kinds: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]*(,[a-z][a-z0-9_]*)*\z",
        description="kinds of records of stores that are not ours, separated by commas",
    )
    data_dir: Path | None = Field(default=None, description="the server's `dir` as this host sees it, to look at bytes")

    @field_validator("url")
    @classmethod
    def _is_redis(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"redis", "rediss"} or not parts.hostname or (parts.port or 0) < 0:
            raise ValueError(WANTED)
        return url


def read(options: dict[str, object]) -> Options:
    """Check the options; a wrong one raises `InvalidRequest` that names it and what is allowed."""
    return Options.read(NAME, options)


def wants_embedded(url: str) -> bool:
    """Tell whether a URL stands for the embedded server; a wrong one raises `InvalidRequest`."""
    return urlsplit(read({"url": url}).url).port == 0
