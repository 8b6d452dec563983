"""Which files a scan looks at: what is named, and everything below a folder, in an order that does not change.

A link that is met on the way is not followed: it could lead anywhere. Where it leads to
something that is part of the scan all is well, and where not it is told, since what lies
there was not looked at. A link that is named is followed. Pipes and sockets below a folder
are passed over: they keep no bytes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.scan.report import Doubt

GONE = (FileNotFoundError, NotADirectoryError)


@dataclass(kw_only=True, slots=True)
class Found:
    """Files in the order of the scan, and what cannot be looked at; each with the path by which it was reached."""

    files: dict[Path, Path] = field(default_factory=dict)
    doubts: dict[Path, tuple[Path, Doubt]] = field(default_factory=dict)
    size: int = 0
    folders: list[Path] = field(default_factory=list)
    links: dict[Path, Path] = field(default_factory=dict)


def walk(paths: Iterable[Path]) -> Found:
    """List the files of these paths; folders by name, depth first. Nothing is opened.

    A file that two of the paths reach is listed once, under the first.
    """
    found = Found()
    for named in paths:
        waiting = [named]
        while waiting:
            path = waiting.pop()
            try:
                waiting += reversed(_enter(found, path, named))
            except OSError as error:
                found.doubts.setdefault(path, (named, doubt_about(error)))
    _follow_up(found)
    return found


def doubt_about(error: OSError) -> Doubt:
    """Say by code what an error of the file system means for a scan."""
    return Doubt.VANISHED if isinstance(error, GONE) else Doubt.UNREADABLE


def _enter(found: Found, path: Path, named: Path) -> list[Path]:
    """Note what a path is, and give what a folder holds."""
    status = path.stat() if path == named else path.lstat()
    if stat.S_ISDIR(status.st_mode):
        found.folders.append(path)
        return sorted(path.iterdir())
    if stat.S_ISREG(status.st_mode):
        if path not in found.files:
            found.files[path] = named
            found.size += status.st_size
    elif stat.S_ISLNK(status.st_mode):
        found.links[path] = named
    elif path == named or not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
        found.doubts.setdefault(path, (named, Doubt.NOT_A_FILE))
    return []


def _follow_up(found: Found) -> None:
    """Tell of links that lead out of what is looked at."""
    if found.links:
        reached = {os.path.realpath(path) for path in (*found.files, *found.folders)}
        for link, named in found.links.items():
            target = os.path.realpath(link)
            # In a folder that was listed: what is there is part of the scan, or there is nothing.
            if target not in reached and os.path.dirname(target) not in reached:  # noqa: PTH120 - a text
                found.doubts.setdefault(link, (named, Doubt.LEADS_OUT))
