"""A derived store of notes in JSON lines, as an adapter author might write it: no fence, verify finds late writers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from orchestrator import (
    MAX_PAGE,
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    Holding,
    PerOrder,
    Role,
    Scope,
    Seen,
    SelectorKind,
    StoreUnreachable,
    Target,
)
from orchestrator.testing import Record, StoreUnderTest

Note: TypeAlias = dict[str, Any]


class NotesAdapter(PerOrder):
    """`notes.jsonl` holds the notes; `index.jsonl` says what each was made from."""

    name = "notes"
    role = Role.DERIVED
    max_batch = 50

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self.folder = context.state_dir

    def add(self, scope: Scope, text: str, made_from: str) -> None:
        self.add_all([(scope, text, made_from)])

    def add_all(self, notes: Sequence[tuple[Scope, str, str]]) -> None:
        rows = [
            {"id": str(uuid4()), "tenant": scope.tenant, "user": scope.user, "project": scope.project, "of": made_from}
            for scope, _, made_from in notes
        ]
        texts = [{**row, "text": text} for row, (_, text, _) in zip(rows, notes, strict=True)]
        self.write("notes", [*self.read("notes"), *texts])
        self.write("index", [*self.read("index"), *rows])

    def find_one(self, order: EraseOrder) -> Holding:
        self._in_time(order)
        found = [Target(kind="note", id=n["id"], derived_of=n["of"]) for n in _named(self.read("index"), order)]
        start = int(order.cursor or 0)
        end = start + MAX_PAGE
        return Holding(targets=tuple(found[start:end]), cursor=str(end) if end < len(found) else None)

    def erase_one(self, order: EraseOrder) -> Erased:
        self._in_time(order)
        going = {target.id for target in order.targets}
        notes = self.read("notes")
        kept = [n for n in notes if n["id"] not in going or n["tenant"] != order.scope.tenant]
        erased = len(notes) - len(kept)
        if erased:
            self.write("notes", kept)
            left = {n["id"] for n in kept}
            self.write("index", [n for n in self.read("index") if n["id"] in left])
        self._context.log.info("notes.erased", job_id=str(order.job), erased=erased)
        return Erased(erased=erased, already_absent=len(order.targets) - erased)

    def verify_one(self, order: EraseOrder) -> Seen:
        self._in_time(order)
        notes, wanted = self.read("notes"), {target.id for target in order.targets}
        left = {n["id"] for n in notes if n["id"] in wanted and n["tenant"] == order.scope.tenant}
        return Seen(remaining=len(left.union(n["id"] for n in _named(notes, order))))

    def close(self) -> None:
        """Nothing is kept open."""

    def read(self, name: str) -> list[Note]:
        with _translated():
            lines = (self.folder / f"{name}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def write(self, name: str, rows: Sequence[Note]) -> None:
        with _translated():
            fresh = self.folder / f"{name}.new"
            fresh.write_text("".join(json.dumps(row) + "\n" for row in rows))
            fresh.replace(self.folder / f"{name}.jsonl")

    def _in_time(self, order: EraseOrder) -> None:
        if self._context.clock.now() > order.deadline:
            raise DeadlinePassed


class NotesUnderTest(StoreUnderTest):
    adapter: NotesAdapter

    def __init__(self, context: AdapterContext, lines: list[str]) -> None:
        self.adapter = NotesAdapter(context)
        self._lines = lines
        self.adapter.write("notes", [])
        self.adapter.write("index", [])

    def plant(self, record: Record) -> None:
        self.plant_all([record])

    def plant_all(self, records: Sequence[Record]) -> None:
        self.adapter.add_all([(r.scope, r.text, f"{r.fact.kind}:{r.fact.id}") for r in records])

    def raw(self) -> Mapping[str, bytes]:
        lines = (self.adapter.folder / "notes.jsonl").read_bytes().splitlines()
        return {json.loads(line)["id"]: line for line in lines}

    def readable(self, record: Record) -> bool:
        own = (record.scope.tenant, record.scope.user, record.scope.project, record.text)
        return any((n["tenant"], n["user"], n["project"], n["text"]) == own for n in self.adapter.read("notes"))

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        here = self.adapter.folder
        away = here.rename(here.with_name("away"))
        try:
            yield
        finally:
            away.rename(here)

    def late_write(self, record: Record, revision: int) -> bool:
        del revision  # this store has no fence
        self.plant(record)
        return True

    @contextmanager
    def lie(self) -> Iterator[None]:
        with super().lie():
            self.adapter.write("index", [])
            yield

    def log(self) -> list[str]:
        return self._lines


def _named(notes: Sequence[Note], order: EraseOrder) -> list[Note]:
    known = {f"{target.kind}:{target.id}" for target in (*order.known, *order.targets)}
    scope = order.scope
    return [
        n
        for n in notes
        if (n["tenant"], n["user"]) == (scope.tenant, scope.user)
        and scope.project in {None, n["project"]}
        and (n["of"] in known or order.selector.kind is SelectorKind.SUBJECT)
    ]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise StoreUnreachable from None


def open_notes(folder: Path, context: AdapterContext, lines: list[str]) -> NotesUnderTest:
    folder.mkdir(parents=True, exist_ok=True)
    return NotesUnderTest(context, lines)
