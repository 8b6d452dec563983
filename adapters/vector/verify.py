"""Looking again: hand-written SQL on a read-only connection, and the neighbourhood in which each erased vector lay.

Principles: none of what finds or erases is called. Points are looked for by their ids and by what
they were made from, whoever they say is their owner; by the scope and by the source; and by
asking for what lies nearest, as a reader would. Whatever is seen on one of these roads remains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import PART
from adapters.memory.look import Look, looking
from adapters.vector import floats
from adapters.vector.probe import probe
from orchestrator import EraseOrder, Gate, Seen, SelectorKind

NEAREST: Final = 10
"""How many of the nearest points are looked at for each that was erased."""
_AT_ONCE: Final = 100
"""Probes in one statement."""
# CROSS JOIN keeps SQLite from reading the whole table before what is given.
_POINTS: Final = """
    SELECT given.number, p.id FROM {given} CROSS JOIN vector_points AS p WHERE p.tenant = given.tenant
"""
_BY_ID: Final = _POINTS + " AND p.id = given.id"
_BY_ORIGIN: Final = (
    _POINTS
    + """ AND p.origin = given.origin AND p.kind = given.kind
      AND (p.version = given.version OR given.version = 0 OR p.version = 0)"""
)
_OF_SOURCE: Final = _POINTS + " AND p.user_id = given.user_id AND p.source = given.source"
# What was written after the source had revoked is no copy of what it forgot.
_OF_SUBJECT: Final = (
    _POINTS
    + """ AND p.user_id = given.user_id AND (given.project IS NULL OR p.project = given.project)
      AND (given.revision IS NULL OR p.revision <= CAST(given.revision AS bigint))"""
)
_SKETCHES: Final = """
    SELECT given.number, s.id, s.sketch FROM {given} CROSS JOIN vector_probes AS s
    WHERE s.tenant = given.tenant AND s.id = given.id
"""
_VECTORS: Final = """
    SELECT p.id, p.vector FROM {given} CROSS JOIN vector_points AS p
    WHERE p.tenant = given.tenant AND p.user_id = given.user_id
"""
_NEAREST: Final = f"""
    SELECT near.id FROM {{given}} CROSS JOIN LATERAL (
        SELECT p.id FROM vector_points AS p WHERE p.tenant = given.tenant AND p.user_id = given.user_id
        ORDER BY p.vector <=> CAST(given.probe AS vector) LIMIT {NEAREST}) AS near
"""  # noqa: S608 - a number of ours


def verify(
    url: sa.URL, gate: Gate, orders: Sequence[EraseOrder], *, dimensions: int, wait_ms: int, in_time: Callable[[], None]
) -> list[Seen]:
    """Count what remains of each order: each point once, on however many roads it is seen."""
    left: defaultdict[int, set[str]] = defaultdict(set)
    with looking(url, wait_ms=wait_ms) as look:
        for number, id_ in (*_named(look, orders), *_of_scopes(look, orders)):
            left[number].add(id_)
        nearest = _measured if url.get_backend_name() == "sqlite" else _asked
        for number, probes in _probes(look, gate, orders, dimensions).items():
            in_time()
            order = orders[number]
            near = nearest(look, (order.scope.tenant, order.scope.user), probes)
            left[number] |= {target.id for target in order.targets}.intersection(near)
    return [Seen(remaining=len(left[number])) for number in range(len(orders))]


def _named(look: Look, orders: Sequence[EraseOrder]) -> Iterator[tuple[int, str]]:
    numbered = list(enumerate(orders))
    ids = [(n, o.scope.tenant, target.id) for n, o in numbered for target in o.targets]
    yield from look(_BY_ID, ("number", "tenant", "id"), ids)
    # What was made from a point is a copy as well, though the find could not know of it.
    known = [(n, o.scope.tenant, t.kind, t.id, t.version) for n, o in numbered for t in {*o.known, *o.targets}]
    yield from look(_BY_ORIGIN, ("number", "tenant", "kind", "origin", "version"), known)


def _of_scopes(look: Look, orders: Sequence[EraseOrder]) -> Iterator[tuple[int, str]]:
    numbered = list(enumerate(orders))
    sources = [
        (n, o.scope.tenant, o.scope.user, o.selector.value)
        for n, o in numbered
        if o.selector.kind is SelectorKind.SOURCE
    ]
    yield from look(_OF_SOURCE, ("number", "tenant", "user_id", "source"), sources)
    subjects = [
        (n, o.scope.tenant, o.scope.user, o.scope.project, None if o.revision is None else str(o.revision))
        for n, o in numbered
        if o.selector.kind is SelectorKind.SUBJECT
    ]
    yield from look(_OF_SUBJECT, ("number", "tenant", "user_id", "project", "revision"), subjects)


def _probes(look: Look, gate: Gate, orders: Sequence[EraseOrder], dimensions: int) -> dict[int, list[Any]]:
    """Give for each order a vector near to each of its targets of which a sketch was kept."""
    rows = [(n, o.scope.tenant, target.id) for n, o in enumerate(orders) for target in o.targets]
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for number, id_, kept in look(_SKETCHES, ("number", "tenant", "id"), rows):
        found[number].append(probe(gate, orders[number].scope.tenant, id_, kept, dimensions))
    return found


def _measured(look: Look, subject: tuple[str, str], probes: Sequence[Any]) -> set[str]:
    """Give the ids of the points of a subject that lie nearest to each probe, of every part that is read at a time."""
    import numpy as np  # noqa: PLC0415 - loads only where vectors are worked with

    near: set[str] = set()
    asked = np.array(probes)
    rows = look(_VECTORS, ("tenant", "user_id"), [subject])
    while part := list(islice(rows, PART)):
        points = floats.directions(floats.rows([vector for _, vector in part]))
        count = min(NEAREST, len(part))
        places = np.argpartition(-(asked @ points.T), count - 1, axis=1)[:, :count]
        near.update(part[place][0] for place in np.unique(places))
    return near


def _asked(look: Look, subject: tuple[str, str], probes: Sequence[Any]) -> set[str]:
    """Let the database say the same."""
    near: set[str] = set()
    for start in range(0, len(probes), _AT_ONCE):
        texts = [str(probe_.astype(int).tolist()) for probe_ in probes[start : start + _AT_ONCE]]
        rows = [(*subject, text) for text in texts]
        near.update(id_ for (id_,) in look(_NEAREST, ("tenant", "user_id", "probe"), rows))
    return near
