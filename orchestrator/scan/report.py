"""What a scan has to say: for each file, for each owner of fingerprints, and for the whole. Counts and codes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from orchestrator.scan.formats import Unscannable


class Verdict(StrEnum):
    """What was seen; the first that holds."""

    FOUND = "found"  # bytes of a wanted value lie there
    INCONCLUSIVE = "inconclusive"  # it could not be looked at as a whole: look again
    NOT_SCANNABLE = "not_scannable"  # compressed or encrypted: looking again will not help
    CLEAN = "clean"  # looked at from end to end, and nothing was seen


class Doubt(StrEnum):
    """Why a look at a file proves nothing."""

    UNREADABLE = "unreadable"  # it, or the folder, cannot be opened or read
    VANISHED = "vanished"  # it is not there, or went away meanwhile
    CHANGED = "changed"  # it was written to, grew or was replaced before the scan was over
    APPEARED = "appeared"  # it came into the folder while the scan was running
    LEADS_OUT = "leads_out"  # a link to something that is not part of the scan
    NOT_A_FILE = "not_a_file"  # a device, or a pipe or socket that was named
    NO_CONTROL = "no_control"  # the scan did not see what was planted for it


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReport:
    """What was seen in one file. `named` is the path by which the scan came to it, `size` the bytes looked at.

    `hits` counts, for each owner, the positions at which one of its windows begins: a value
    that lies there whole has one for each of its fingerprints in that encoding.
    """

    path: Path
    named: Path
    size: int = 0
    hits: Mapping[str, int] = field(default_factory=dict)
    doubt: Doubt | None = None
    unscannable: Unscannable | None = None

    @property
    def verdict(self) -> Verdict:
        """What is seen counts, however much could not be looked at."""
        if self.hits:
            return Verdict.FOUND
        if self.doubt is not None:
            return Verdict.INCONCLUSIVE
        return Verdict.CLEAN if self.unscannable is None else Verdict.NOT_SCANNABLE


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was seen in all files. Without `control_found` nothing is clean, even where there was no file."""

    files: tuple[FileReport, ...]
    control_found: bool

    @property
    def hits(self) -> Mapping[str, int]:
        """Count the hits of each owner that has any, over all files."""
        total: Counter[str] = Counter()
        for file in self.files:
            total.update(file.hits)
        return total

    @property
    def verdict(self) -> Verdict:
        """Say the worst that was seen for anybody."""
        return self._worst(found=bool(self.hits))

    def of(self, owner: str) -> Verdict:
        """Say what was seen for one owner: hits of others do not count, doubts do."""
        return self._worst(found=owner in self.hits)

    def _worst(self, *, found: bool) -> Verdict:
        if found:
            return Verdict.FOUND
        if not self.control_found or any(file.doubt is not None for file in self.files):
            return Verdict.INCONCLUSIVE
        dark = any(file.unscannable is not None for file in self.files)
        return Verdict.NOT_SCANNABLE if dark else Verdict.CLEAN
