"""`expunge request --file`: a request for each row, each filed once however often the file is run.

Principle: a batch is one transaction, and is told when it is written. A row without an idempotency key has one made of
all that it says, so whoever runs the file again after a kill files what is missing and nothing else.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple
from uuid import UUID

import structlog
import typer

from orchestrator.bootstrap import Control
from orchestrator.cli import rows
from orchestrator.cli.failures import FAILED
from orchestrator.cli.options import as_text, opened, requester
from orchestrator.cli.progress import of_bytes
from orchestrator.cli.rows import Row
from orchestrator.domain.errors import IdempotencyConflict, InvalidRequest
from orchestrator.domain.states import OVER, JobState
from orchestrator.service.accept import Acceptance, Request, accept_all
from orchestrator.store import views

BATCH: Final = 500
STANDARD_INPUT: Final = "-"


class Result(NamedTuple):
    """What became of a row: `accepted`, `known` (filed before) or `refused`, with its job or the reason."""

    row: int
    outcome: str
    job: str | None = None
    state: JobState | None = None
    why: str | None = None


def file_rows(name: str, directory: Path | None, *, as_json: bool) -> int:
    """File every row of a file, tell what became of each, and give the exit code: 1 where some were refused."""
    counts = dict.fromkeys(("accepted", "known", "refused"), 0)
    over = 0
    with opened(directory) as control, of_bytes("requests") as told, _stream(name) as (lines, whole):
        # On a terminal the bar says how far it is: a log line for each job would bury it.
        using = control.acceptance if told is None else replace(control.acceptance, log=_grave())
        read = _Counted(lines)
        found = rows.read(read, requester(), json_lines=name.endswith(".jsonl"))
        while batch := list(islice(found, BATCH)):
            results = _file(batch, control, using)
            # Not by Typer, which goes past the bar: a terminal that shows both has the lines above it.
            sys.stdout.writelines(f"{as_text(r._asdict()) if as_json else _line(r)}\n" for r in results)
            sys.stdout.flush()
            for result in results:
                counts[result.outcome] += 1
            over += sum(r.outcome == "known" and r.state in OVER for r in results)
            if told is not None:
                told(read.bytes, whole)
    if not any(counts.values()):
        message = "there is no request in the file: write one a line"
        raise InvalidRequest(message, field="file")
    typer.echo(", ".join(f"{outcome} {count}" for outcome, count in counts.items()), err=True)
    if over:
        typer.echo(
            f"{over} of the known ones have ended, and erase nothing that came later: to ask anew, give these rows an "
            "idempotency_key or another reference",
            err=True,
        )
    return FAILED if counts["refused"] else 0


class _Counted:
    """Lines, and how many bytes of them were read."""

    def __init__(self, lines: BinaryIO) -> None:
        self._lines, self.bytes = lines, 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.bytes += len(line)
            yield line


@contextmanager
def _stream(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open the file, or standard input; give how long it is, where that can be known."""
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer, None
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(name).open("rb"))
        except OSError as error:
            raise InvalidRequest(f"cannot read {name}: {error.strerror}", field="file") from None
        seen = os.fstat(stream.fileno())
        yield stream, seen.st_size if stat.S_ISREG(seen.st_mode) else None


def _grave() -> Any:  # noqa: ANN401 - structlog's own type
    """Give a logger that says what is grave, and nothing else."""
    return structlog.wrap_logger(None, wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


def _file(batch: Sequence[Row], control: Control, using: Acceptance) -> list[Result]:
    asked = [(row.number, row.request) for row in batch if row.request is not None]
    filed = _filed(asked, using)
    known = [str(answer[0]) for answer in filed.values() if answer is not None and not answer[1]]
    with control.database.begin() as connection:
        states = views.states(connection, known) if known else {}
    return [_result(row, filed, states) for row in batch]


def _filed(asked: Sequence[tuple[int, Request]], using: Acceptance) -> Mapping[int, tuple[UUID, bool] | None]:
    """File requests in one transaction; give each row's job and whether it is new, None for a conflict of its key."""
    if not asked:
        return {}
    try:
        answers = accept_all([request for _, request in asked], using)
    except IdempotencyConflict:
        if len(asked) == 1:
            return {asked[0][0]: None}
        # One of them stops all: halves, until it stands alone.
        middle = len(asked) // 2
        return {**_filed(asked[:middle], using), **_filed(asked[middle:], using)}
    return {number: answer for (number, _), answer in zip(asked, answers, strict=True)}


def _result(row: Row, filed: Mapping[int, tuple[UUID, bool] | None], states: Mapping[str, JobState]) -> Result:
    if row.request is None:
        return Result(row.number, "refused", why=row.why)
    answer = filed[row.number]
    if answer is None:
        return Result(row.number, "refused", why=str(IdempotencyConflict()))
    job = str(answer[0])
    if answer[1]:
        return Result(row.number, "accepted", job, JobState.REQUESTED)
    return Result(row.number, "known", job, states[job])


def _line(result: Result) -> str:
    if result.job is None:
        return f"row {result.row}: refused: {result.why}"
    state = "" if result.state is None else f" ({result.state.value})"
    return f"row {result.row}: {result.outcome}, job {result.job}{state}"
