"""`expunge scan`: are bytes of these values in those files? Needs no state directory, and never prints a value."""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from orchestrator.cli.options import AsJson, show
from orchestrator.cli.progress import of_bytes
from orchestrator.domain.contract import Fingerprint
from orchestrator.domain.errors import ExpungeError, InvalidRequest
from orchestrator.gate.keyring import Keyring
from orchestrator.scan.encodings import Encoding, forms
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.report import Doubt, FileReport, Report, Verdict

FOUND, NOT_LOOKED_AT = 1, 4
STANDARD_INPUT: Final = "-"
# Quotes and a letter beyond ASCII, so that it differs from itself in every encoding.
MARKER: Final = '{0} "planted" by expunge scan, \u00e9 {0}'


@dataclass(kw_only=True)
class Values:
    """What to look for, by line number; the texts themselves are kept only to leave them out of printed paths."""

    prints: dict[str, tuple[Fingerprint, ...]] = field(default_factory=dict)
    not_probeable: dict[int, frozenset[Encoding]] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)

    def without(self, path: Path) -> str:
        """Give a path as text, with the number of the line in the place of each value that can be looked for."""
        text = str(path)
        for value in sorted(self.texts, key=len, reverse=True):
            text = text.replace(value, f"(line {self.texts[value]})")
        return text


def add_to(app: typer.Typer) -> None:
    """Add the command of this family."""
    app.command(epilog="Example: expunge scan --fingerprints-of values.txt exports/ backup.db")(scan)


def scan(
    paths: Annotated[list[Path], typer.Argument(help="Files, and folders with all below them.", metavar="PATH")],
    fingerprints_of: Annotated[
        str,
        typer.Option(help="Values to look for, one a line, in UTF-8; - is standard input.", metavar="FILE"),
    ],
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Look for values in files, byte by byte. The exit code tells: nothing there (0), found (1), not all seen (4)."""
    for path in paths:
        _exists(path)
    by = Fingerprinter.of(Keyring.create())
    values = _values(_read(fingerprints_of), by)
    # numpy is loaded by no other command.
    from orchestrator.scan import scanner  # noqa: PLC0415

    marker = MARKER.format(secrets.token_hex(16))
    with _planted(marker) as control, of_bytes("scan") as told:
        report = scanner.scan([control, *paths], values.prints, by=by, control=by.of_text(marker).rows, told=told)
    report = Report(
        files=tuple(file for file in report.files if file.path != control), control_found=report.control_found
    )
    parts = _parts(report, paths)
    show(_document(report, parts, values), list(_lines(report, parts, values)), as_json=as_json)
    if report.verdict is Verdict.FOUND:
        raise typer.Exit(FOUND)
    raise typer.Exit(0 if report.verdict is Verdict.CLEAN and not values.not_probeable else NOT_LOOKED_AT)


def _exists(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidRequest(f"cannot look at {path}: {error.strerror}", field="paths") from None
    except OSError:
        return  # the scan tells it for this path, and goes on with the others


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        # Not its name: somebody may have typed the value itself.
        message = f"cannot read the file that --fingerprints-of names: {error.strerror}"
        raise InvalidRequest(message, field="fingerprints_of") from None


def _values(content: bytes, by: Fingerprinter) -> Values:
    values = Values()
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            message = f"line {number} of the values is no text in UTF-8"
            raise InvalidRequest(message, field="fingerprints_of") from None
        if text.strip():
            prints = by.of_text(text)
            values.prints[str(number)] = prints.rows
            if prints.rows:
                values.texts.setdefault(text, number)
            if prints.not_probeable:
                values.not_probeable[number] = prints.not_probeable
    if not values.prints:
        message = "there is no value to look for: write one a line"
        raise InvalidRequest(message, field="fingerprints_of")
    return values


@contextmanager
def _planted(marker: str) -> Iterator[Path]:
    """Write the marker in each encoding into a temporary file of ours: what the scan has to see to be believed."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="expunge-scan-"))
            file = Path(folder) / "control"
            file.write_bytes(b"\n".join(form for _, form in forms(marker)))
        except OSError as error:
            message = f"cannot plant the control in the temporary folder: {error.strerror}"
            raise ExpungeError(message) from None
        yield file


def _parts(report: Report, paths: list[Path]) -> dict[Path, Report]:
    """Give for each named path the part of the report that is about it; a file below two of them belongs to both."""
    files: dict[Path, list[FileReport]] = {path: [] for path in paths}
    for file in report.files:
        for path in files.keys() & {file.named, file.path, *file.path.parents}:
            files[path].append(file)
    return {path: Report(files=tuple(of), control_found=report.control_found) for path, of in files.items()}


def _lines(report: Report, parts: dict[Path, Report], values: Values) -> Iterator[str]:
    for path, part in parts.items():
        size = sum(file.size for file in part.files)
        yield f"{part.verdict:13}  {values.without(path)}: files {len(part.files)}, bytes {size}{_hits(part.hits)}"
        for file in part.files:
            # Without a control all would be in the list, and the last line says it.
            if file.hits or (file.verdict is not Verdict.CLEAN and file.doubt is not Doubt.NO_CONTROL):
                yield f"  {file.verdict:13}  {values.without(file.path)}{_code(file)}{_hits(file.hits)}"
    for number, encodings in values.not_probeable.items():
        where = ", ".join(sorted(encodings))
        yield f"not_probeable  line {number}: under 16 bytes, or one short pattern over and over, in {where}"
    if report.control_found:
        yield "control: seen, in a temporary file that was planted for this run"
    else:
        yield "control: not seen, so nothing is called clean; is the temporary folder full, or cleaned by others?"


def _code(file: FileReport) -> str:
    codes = [code for code in (file.doubt, file.unscannable) if code is not None]
    return f" ({', '.join(codes)})" if codes else ""


def _hits(hits: Mapping[str, int]) -> str:
    if not hits:
        return ""
    return f": hits {sum(hits.values())}, of the values in line {', '.join(hits)}"


def _document(report: Report, parts: dict[Path, Report], values: Values) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "control_found": report.control_found,
        "values": len(values.prints),
        "not_probeable": {str(number): sorted(encodings) for number, encodings in values.not_probeable.items()},
        "hits": report.hits,
        "paths": [
            {
                "path": values.without(path),
                "verdict": part.verdict,
                "files": len(part.files),
                "bytes": sum(file.size for file in part.files),
                "hits": part.hits,
            }
            for path, part in parts.items()
        ],
        "files": [
            {
                "path": values.without(file.path),
                "verdict": file.verdict,
                "bytes": file.size,
                "hits": file.hits,
                "doubt": file.doubt,
                "format": file.unscannable,
            }
            for file in report.files
        ],
    }
