"""Which points of a scope lie nearest to a vector, by the angle between them: what readers are given comes from here.

The scope stands in the statement: nothing of anybody else is ranked and then taken out. A scope
of many points is asked of the graph, where there is one; the graph looks at a part of what it
holds, so where it gives too few all points of the scope are measured.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy as sa

from adapters.memory.batch import PART, Found
from adapters.memory.facts import place_of
from adapters.vector import floats
from adapters.vector.tables import points
from orchestrator import Scope, Target

MEASURED: Final = 10_000
"""Points of one scope that are measured one by one where there is a graph as well."""
_p: Final = points.c
_HERE: Final = tuple(
    _p[name] == sa.bindparam(f"of_{name}", type_=sa.Text()) for name in ("tenant", "user_id", "project")
)
_ASKED: Final = sa.bindparam("asked", type_=_p.vector.type)
_DISTANCE: Final[sa.ColumnElement[float]] = _p.vector.op("<=>", return_type=sa.Double())(_ASKED)
_RANKED: Final = (
    sa.select(_p.id, _p.kind, _p.origin, _p.version, _p.source, (1 - _DISTANCE).label("score"))
    .where(*_HERE)
    .order_by(_DISTANCE)
    .limit(sa.bindparam("count", type_=sa.BigInteger()))
)
_OF_SCOPE: Final = sa.select(_p.id, _p.kind, _p.origin, _p.version, _p.source, _p.vector).where(*_HERE)
_MOST: Final = sa.bindparam("most", type_=sa.BigInteger())
_COUNTED: Final = sa.select(_p.id).where(*_HERE).limit(_MOST + 1).subquery()
_MANY: Final = sa.select(sa.func.count() > _MOST).select_from(_COUNTED)
_BY_GRAPH: Final = "SET LOCAL hnsw.iterative_scan = strict_order"
# The graph can be read by an index scan alone; the other ways are open, whatever the server is set to.
_ONE_BY_ONE: Final = "; ".join(
    f"SET LOCAL enable_{way} = {state}"
    for way, state in {"indexscan": "off", "bitmapscan": "on", "seqscan": "on", "sort": "on"}.items()
)


class Near(NamedTuple):
    """A point, what it was made from (None: it names nothing), and the cosine of its angle to what was asked."""

    id: str
    made_from: Target | None
    source: str
    score: float


def nearest(connection: sa.Connection, scope: Scope, vector: bytes, count: int) -> list[Near]:
    """Give the `count` nearest points of exactly this scope, the nearest first; fewer where there are no more."""
    here = {f"of_{name}": value for name, value in place_of(scope).items()}
    if connection.dialect.name == "sqlite":
        found = _measured(connection, here, vector, count)
    else:
        found = _asked(connection, here, vector, count)
    return sorted(found, key=_order)


def _measured(connection: sa.Connection, here: dict[str, str], vector: bytes, count: int) -> list[Near]:
    asked = floats.directions(floats.rows([vector]))[0]
    best: list[Near] = []
    for part in connection.execute(_OF_SCOPE, here).partitions(PART):
        scores = floats.directions(floats.rows([row.vector for row in part])) @ asked
        of_part = sorted(zip(scores.tolist(), range(len(part)), strict=True), key=lambda one: -one[0])[:count]
        near = (Near(part[n].id, _made_from(part[n]), part[n].source, score) for score, n in of_part)
        best = sorted((*best, *near), key=_order)[:count]
    return best


def _order(near: Near) -> tuple[float, str]:
    return -near.score, near.id


def _asked(connection: sa.Connection, here: dict[str, str], vector: bytes, count: int) -> list[Near]:
    given, rows = {**here, "asked": vector, "count": count}, list[Found]()
    if connection.scalar(_MANY, {**here, "most": MEASURED}):
        connection.exec_driver_sql(_BY_GRAPH)
        rows = [*connection.execute(_RANKED, given)]
    if len(rows) < count:
        connection.exec_driver_sql(_ONE_BY_ONE)
        rows = [*connection.execute(_RANKED, given)]
    return [Near(row.id, _made_from(row), row.source, row.score) for row in rows]


def _made_from(row: Found) -> Target | None:
    return None if row.kind is None else Target(kind=row.kind, id=row.origin, version=row.version)
