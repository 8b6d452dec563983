"""The vector index of an application: written through a guard, and read with each hit held against its master.

Principles: a point whose record its source does not hand out now is neither written nor shown.
A search that fails gives nothing, and never more than was asked for. Points lie in exactly one
scope and are found from exactly that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from adapters.memory.engine import reading, writing
from adapters.memory.facts import place_of
from adapters.vector import floats
from adapters.vector.floats import Numbers
from adapters.vector.nearest import Near, nearest
from adapters.vector.tables import points
from orchestrator import ErasureError, Gate, InvalidRequest, Masters, Refusal, Scope, Selector, SelectorKind, Target

MOST: Final = 1000
"""Hits that one search gives, and points that one write takes."""
SPARE: Final = 20
"""Points that are ranked beyond those asked for, since some may have lost their masters."""
_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_VERSIONS_END: Final = 2**63


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A vector to be kept, the record it was made from, and the source of that record.

    A record may have several, told apart by `part`. What is not named here is not found when it is to go.
    """

    made_from: Target
    source: str
    vector: Numbers = field(repr=False)
    part: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """What a write came to: the ids of the points that are kept, and how many the guard refused."""

    ids: tuple[str, ...] = ()
    refused: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A point that a search gives; `score` is the cosine of its angle to what was asked, 1 for the same direction."""

    id: str
    made_from: Target
    source: str
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a search came to: hits, the nearest first, and how many points were dropped because they have no master.

    `failed`: the index or the source of the masters did not answer, so nothing is given.
    """

    hits: tuple[Hit, ...] = ()
    dropped: int = 0
    failed: bool = False


class VectorIndex:
    """Points of scopes. The caller vouches for the scope: it comes from a session, never from a request's body.

    `refused` counts what the guard refused in this process, by code, and `dropped` what searches dropped.
    """

    def __init__(self, engine: sa.Engine, gate: Gate, masters: Sequence[Masters], *, dimensions: int, log: Any) -> None:  # noqa: ANN401 - structlog's own type
        """Bind the index to its database and to the sources of its records."""
        self._engine, self._gate, self._masters = engine, gate, masters
        self._dimensions, self._log = dimensions, log
        self.refused: Counter[Refusal] = Counter()
        self.dropped = 0

    def put(self, scope: Scope, given: Collection[Point]) -> Stored:
        """Keep points whose records are handed out in this scope now, and refuse the others: all in one transaction.

        The same part of the same record is one point, whose vector is replaced. Raises `InvalidRequest`
        for a point that is none, and then keeps nothing.
        """
        if len(given) > MOST:
            raise InvalidRequest(f"at most {MOST} points are written at once", field="points")
        rows = [(_record(point), self._row(scope, point)) for point in given]
        with writing(self._engine, [scope.tenant]) as connection:
            active = self._active(scope, {record for record, _ in rows}) if rows else {}
            kept = [{**row, "revision": active[record]} for record, row in rows if record in active]
            if kept:
                connection.execute(_upsert(connection.dialect.name), kept)
        refused = len(rows) - len(kept)
        if refused:
            self.refused[Refusal.STALE_REVISION] += refused
            self._log.info("gate.refused", code=Refusal.STALE_REVISION.value, points=refused)
        return Stored(ids=tuple(dict.fromkeys(row["id"] for row in kept)), refused=refused)

    def search(self, scope: Scope, vector: Numbers, limit: int = 10) -> Answer:
        """Give the points of exactly this scope that lie nearest to a vector and whose records are handed out now.

        Raises `InvalidRequest` for a limit below 1 or above `MOST`, and for a vector that cannot be compared.
        """
        if not 1 <= limit <= MOST:
            raise InvalidRequest(f"limit must be from 1 to {MOST}", field="limit")
        asked = floats.packed(vector, self._dimensions, self._engine.dialect.name)
        try:
            hits, dropped = self._resolved(scope, asked, limit)
        except ErasureError as error:
            self._log.warning("index.failed", code=error.code.value)
            return Answer(failed=True)
        if dropped:
            self.dropped += dropped
            self._log.info("hits.dropped", points=dropped)
        return Answer(hits=tuple(hits), dropped=dropped)

    def _resolved(self, scope: Scope, asked: bytes, limit: int) -> tuple[list[Hit], int]:
        count = limit + SPARE
        while True:
            with reading(self._engine, [scope.tenant]) as connection:
                found = nearest(connection, scope, asked, count)
            # After the index was read: what was revoked meanwhile is not among them.
            active = self._active(scope, {near.made_from for near in found if near.made_from is not None})
            hits, dropped = _hits(found, active, limit)
            if len(hits) == limit or len(found) < count:
                return hits, dropped
            count *= 4

    def _active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        return {record: rev for masters in self._masters for record, rev in masters.active(scope, records).items()}

    def _row(self, scope: Scope, point: Point) -> dict[str, Any]:
        record = _record(point)
        Selector(kind=SelectorKind.SOURCE, value=point.source)  # what no selector could name is never stored
        if not 0 <= point.part < _VERSIONS_END:
            message = "part must be a number from 0 on"
            raise InvalidRequest(message, field="part")
        name = (record.kind, record.id, str(record.version), str(point.part))
        return {
            **place_of(scope),
            "id": self._gate.handle(scope.tenant, "vector-point", scope.canonical(), *name),
            "kind": record.kind,
            "origin": record.id,
            "version": record.version,
            "source": point.source,
            "vector": floats.packed(point.vector, self._dimensions, self._engine.dialect.name),
        }


def _record(point: Point) -> Target:
    made = point.made_from
    Selector(kind=SelectorKind.MEMORY, value=made.id)
    if _KIND.fullmatch(made.kind) is None:
        raise InvalidRequest(f"kind must be a word: {_KIND.pattern}", field="kind")
    if not 0 <= made.version < _VERSIONS_END:
        message = "version must be a number from 0 on"
        raise InvalidRequest(message, field="version")
    return Target(kind=made.kind, id=made.id, version=made.version)


def _hits(found: Sequence[Near], active: Collection[Target], limit: int) -> tuple[list[Hit], int]:
    hits, dropped = list[Hit](), 0
    for near in found:
        if len(hits) == limit:
            break
        if near.made_from is None or near.made_from not in active:
            dropped += 1
        else:
            hits.append(Hit(id=near.id, made_from=near.made_from, source=near.source, score=near.score))
    return hits, dropped


def _upsert(dialect: str) -> sa.Executable:
    insert = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(points)
    changed = {name: insert.excluded[name] for name in ("source", "revision", "vector")}
    return insert.on_conflict_do_update(index_elements=list(points.primary_key), set_=changed)
