"""Scanning files for the fingerprints of many owners in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from orchestrator.domain.contract import Fingerprint
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.reading import Look, Stamp, look_at
from orchestrator.scan.report import Doubt, FileReport, Report
from orchestrator.scan.sieve import CHUNK, Sieve
from orchestrator.scan.walk import Found, doubt_about, walk

Told = Callable[[int, int], None]


def scan(
    paths: Iterable[Path],
    wanted: Mapping[str, Collection[Fingerprint]],
    *,
    by: Fingerprinter,
    control: Collection[Fingerprint],
    told: Told | None = None,
    chunk: int = CHUNK,
) -> Report:
    """Look once at every file of these paths for what each owner wants; give counts and codes.

    `control` are fingerprints of a live record that was planted for this scan, in the encoding
    in which its store keeps it. Each of them has to be seen, or nothing is called clean; a
    scan without any proves nothing. `told` is called with the bytes read so far and in all. `chunk`
    is how many bytes are read at once; `Sieve` says how much memory that takes.

    A file that cannot be read, or that does not hold still until the scan is over, is told as
    such by its `FileReport`. No error of the file system is raised.
    """
    paths, markers = list(paths), list(dict.fromkeys(control))
    sieve = Sieve(by, [*wanted.values(), *([marker] for marker in markers)], chunk)
    found = walk(paths)
    looks = _looks(found, sieve, told)
    doubts = _second_thoughts(paths, found, looks)
    seen = {number for look in looks.values() for number in look.hits}
    control_found = bool(markers) and seen.issuperset(range(len(wanted), len(wanted) + len(markers)))
    unproven = None if control_found else Doubt.NO_CONTROL
    files = [
        FileReport(
            path=path,
            named=found.files[path],
            size=look.size,
            hits={owner: look.hits[number] for number, owner in enumerate(wanted) if number in look.hits},
            doubt=look.doubt or unproven,
            unscannable=look.unscannable,
        )
        for path, look in looks.items()
    ]
    files += [FileReport(path=path, named=named, doubt=doubt) for path, (named, doubt) in doubts.items()]
    return Report(files=tuple(files), control_found=control_found)


def _looks(found: Found, sieve: Sieve, told: Told | None) -> dict[Path, Look]:
    """Read every file once, in the order of the walk."""
    done = 0

    def count(read: int) -> None:
        nonlocal done
        done += read
        if told is not None:
            told(done, found.size)

    return {path: look_at(path, sieve, count) for path in found.files}


def _second_thoughts(paths: list[Path], found: Found, looks: dict[Path, Look]) -> dict[Path, tuple[Path, Doubt]]:
    """Give what could not be looked at, and mark the files that did not hold still until the end.

    Bytes may move while a scan runs: out of a file that it has yet to read, into one that it
    has read already, as a checkpoint of SQLite does it. So all files are compared once more
    with what they were when they were opened, and listed once more.
    """
    for path, look in looks.items():
        if look.doubt is None:
            look.doubt = _moved(path, look)
    again = walk(paths)
    new = {path: (named, Doubt.APPEARED) for path, named in again.files.items() if path not in looks}
    late = {path: doubt for path, doubt in again.doubts.items() if path not in looks}
    return {**new, **late, **found.doubts}


def _moved(path: Path, look: Look) -> Doubt | None:
    try:
        return None if Stamp.of(path.stat()) == look.stamp else Doubt.CHANGED
    except OSError as error:
        return doubt_about(error)
