"""Requests as rows of a file: CSV below a header line, or JSON lines. Each line is a row, and is judged alone.

Principle: what is wrong is told by row and column. No text of the file is repeated, because it is about people; a
header is none either where a file has none, and its first line is somebody's request.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from orchestrator.cli.options import chosen
from orchestrator.domain.codes import Reason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.scope import Scope, check_part
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.service.accept import Request, check_reference

SELECTORS: Final = ("key", "memory", "source", "subject")
NEEDED: Final = ("tenant", "user", "reason")
COLUMNS: Final = ("tenant", "user", "project", *SELECTORS, "reason", "reference", "idempotency_key")
_YES: Final = {"true": True, "false": False, "": False}
_BOM: Final = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """A line by its number, and the request in it, or why there is none."""

    number: int
    request: Request | None
    why: str = ""


def read(lines: Iterable[bytes], requested_by: str, *, json_lines: bool) -> Iterator[Row]:
    """Give a row for each line that is not blank; raises `InvalidRequest` for a header that cannot be followed."""
    columns: Sequence[str] | None = None
    for number, line in enumerate(lines, 1):
        content = line.removeprefix(_BOM) if number == 1 else line
        if columns is None and not json_lines:
            columns = _header(content)
        elif content.strip():
            yield _row(number, content, columns, requested_by)
    if columns is None and not json_lines:
        _header(b"")


def _row(number: int, line: bytes, columns: Sequence[str] | None, requested_by: str) -> Row:
    try:
        cells = _members(_text(line)) if columns is None else _cells(_text(line), columns)
        return Row(number, _request(cells, requested_by))
    except InvalidRequest as error:
        return Row(number, None, str(error))


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        message = "the line is no text in UTF-8"
        raise InvalidRequest(message, field="file") from None


def _split(text: str) -> list[str]:
    try:
        # A line at a time: a quote that nobody closes must not swallow the rows below it.
        return next(csv.reader([text], strict=True), [])
    except csv.Error:
        message = "the line is no CSV: a quote is open, or stands in the middle of a cell"
        raise InvalidRequest(message, field="file") from None


def _header(line: bytes) -> Sequence[str]:
    must = f"the first line must name the columns, with commas between them, out of: {','.join(COLUMNS)}"
    try:
        names = [name.strip().lower() for name in _split(_text(line))]
    except InvalidRequest as error:
        raise InvalidRequest(f"{must}; {error}", field="file") from None
    for place, name in enumerate(names, 1):
        if name not in COLUMNS:
            raise InvalidRequest(f"{must}; column {place} is none of these", field="file")
        if name in names[: place - 1]:
            raise InvalidRequest(f"{must}; column {place} is there twice", field="file")
    missing = [name for name in NEEDED if name not in names]
    if missing or not set(names) & set(SELECTORS):
        lacks = ", ".join([*missing] if set(names) & set(SELECTORS) else [*missing, "one of " + " ".join(SELECTORS)])
        raise InvalidRequest(f"{must}; it lacks {lacks}", field="file")
    return names


def _cells(text: str, columns: Sequence[str]) -> Mapping[str, str]:
    cells = _split(text)
    if len(cells) != len(columns):
        message = f"the line has {len(cells)} cells, and the header {len(columns)} columns"
        raise InvalidRequest(message, field="file")
    return dict(zip(columns, cells, strict=True))


def _members(text: str) -> Mapping[str, str]:
    try:
        told = json.loads(text, object_pairs_hook=_once)
    except (json.JSONDecodeError, RecursionError):
        message = "the line is no JSON"
        raise InvalidRequest(message, field="file") from None
    if not isinstance(told, dict) or not told.keys() <= set(COLUMNS):
        message = f"the line must be a JSON object with keys out of: {', '.join(COLUMNS)}"
        raise InvalidRequest(message, field="file")
    return {name: _member(name, value) for name, value in told.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        message = "a key of the object is there twice"
        raise InvalidRequest(message, field="file")
    return told


def _member(name: str, value: object) -> str:
    match value:
        case None:
            return ""
        case bool() if name == "subject":
            return str(value).lower()
        case str():
            return value
        case _:
            message = f"the value of {name} must be a text"
            raise InvalidRequest(message, field=name)


def _request(cells: Mapping[str, str], requested_by: str) -> Request:
    scope = Scope(tenant=cells.get("tenant", ""), user=cells.get("user", ""), project=cells.get("project", "") or None)
    selector, reference = _selector(cells), cells.get("reference", "") or None
    reason = Reason(chosen("reason", cells.get("reason", ""), Reason))
    check_reference(reference, scope.user, selector)
    key = cells.get("idempotency_key", "")
    if key:
        check_part("idempotency_key", key)
    return Request(
        scope=scope,
        selector=selector,
        reason=reason,
        requested_by=requested_by,
        reference=reference,
        idempotency_key=key or _key(scope, selector, reason, reference),
    )


def _selector(cells: Mapping[str, str]) -> Selector:
    whole = _YES.get(cells.get("subject", "").strip().lower())
    if whole is None:
        message = "subject must be true or false"
        raise InvalidRequest(message, field="subject")
    named = [Selector(kind=SelectorKind(name), value=cells[name]) for name in SELECTORS[:-1] if cells.get(name)]
    found = [*named, Selector(kind=SelectorKind.SUBJECT)] if whole else named
    if len(found) != 1:
        message = f"name exactly one of {', '.join(SELECTORS)}"
        raise InvalidRequest(message, field="selector")
    return found[0]


def _key(scope: Scope, selector: Selector, reason: Reason, reference: str | None) -> str:
    """Name a row by all that it says, so that the same row is filed once wherever it stands; only its hash is kept."""
    told = [selector.kind.value, selector.value, reason.value, reference]
    return f"row:{scope.canonical()}{json.dumps(told, ensure_ascii=False)}"
