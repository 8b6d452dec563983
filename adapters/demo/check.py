"""A claim of the demo, the look that tells whether it is true, and the fault that the look is there to catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from adapters.demo.stage import Stage
from adapters.demo.world import World

Look: TypeAlias = Callable[[Stage], tuple[bool, str]]
"""Tells whether the claim is true, and what was seen: counts, codes and times, never a text."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A claim by name. `plant` makes it false just before the look; None: its fault acts while the story runs."""

    name: str
    look: Look
    plant: Callable[[World], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a check came to."""

    name: str
    ok: bool
    detail: str
