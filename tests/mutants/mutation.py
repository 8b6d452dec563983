"""A rule that is changed in a copy of the source, and the tests that have to notice it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Change: TypeAlias = tuple[str, str, str]
"""A file of the project, a text that stands in it exactly once, and what it becomes."""


@dataclass(frozen=True)
class Mutation:
    """A rule that is changed, in one place or in several that make it up.

    `killed_by` names the tests that fail then, all of them.
    """

    rule: str
    changes: tuple[Change, ...]
    killed_by: tuple[str, ...]


def change(rule: str, file: str, old: str, new: str, *killed_by: str) -> Mutation:
    """Write a mutation of one place down in the order in which it is read."""
    return Mutation(rule, ((file, old, new),), killed_by)


def together(rule: str, changes: tuple[Change, ...], *killed_by: str) -> Mutation:
    """Write a mutation of several places down."""
    return Mutation(rule, changes, killed_by)
