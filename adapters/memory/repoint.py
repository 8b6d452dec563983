"""A fact that two sources told, one of which is forgotten: it stays by the other, as a new version.

Principles: only a source that is forgotten for itself leaves anything standing; whoever forgets a
key, a memory or a subject forgets the fact. What stays is what the gate would let in now, so that
a restore leaves it as well. Its text is not marked: the mark would keep it out, and take it away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import Found, Row, change, columns, look_up
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.judged import is_forgotten
from adapters.memory.selection import Handle, handle_of
from adapters.memory.sources import ancestors_of
from adapters.memory.tables import fact_candidates, fact_high_water, facts, preference_events
from orchestrator import Gate, Scope, fold

Text: TypeAlias = tuple[Scope, str, str]
"""Scope, key and folded text."""
_KEY: Final = columns(tenant=str, user_id=str, project=str, key=str, at_us=int)
_MAC: Final = columns(key_mac=str)
_AGAIN: Final = columns(tenant=str, fact_id=str, version=int, above=int)
_AT_ONCE: Final = 200
"""Records whose texts are compared at a time."""
ALWAYS: Final = 0
"""A time at which nothing has expired that was ever stored."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Texts that stay by another source: of facts the newest version that says so, of others that there is one."""

    versions: Mapping[Text, Found] = field(default_factory=dict)
    others: Collection[Text] = frozenset()

    def __contains__(self, text: Text) -> bool:
        """Tell whether a text stays."""
        return text in self.versions or text in self.others

    def told_twice(self, live: Iterable[Found]) -> set[tuple[Scope, str]]:
        """Name the facts of which a version goes, and another says the same and stays."""
        return {(scope, key) for scope, key, text in map(text_of, live) if (scope, key, text) in self.versions}

    def successors(self, live: Iterable[Found]) -> list[Found]:
        """Give the versions that are to hold again: those that say what an active one says that goes."""
        active = (text_of(row) for row in live if row.active)
        return [self.versions[text] for text in active if text in self.versions]


NOTHING: Final = Standing()


def text_of(row: Found) -> Text:
    """Give what a record says."""
    return scope_of(row.tenant, row.user_id, row.project), row.key, fold(row.value)


def standing(
    connection: sa.Connection,
    gate: Gate,
    live: Iterable[Found],
    *,
    sources: Mapping[str, Collection[str]],
    going: Collection[Handle] = (),
    at_us: int,
) -> Standing:
    """Read what stays of the texts of records that go by their sources.

    Neither what is `going` stays, nor what one of the forgotten `sources` told, by tenant, or any
    that was derived from it; nor what is unconfirmed, or has expired at `at_us`.
    """
    rows, versions, others = iter(live), dict[Text, Found](), set[Text]()
    while wanted := {text_of(row) for row in islice(rows, _AT_ONCE)}:
        keys = {(scope.tenant, scope.user, scope.project or "", key, at_us) for scope, key, _ in wanted}
        told = ((text_of(row), row) for row in look_up(connection, _KEY, sorted(keys), _told))
        some = [(text, row) for text, row in told if text in wanted and handle_of(row) not in going]
        forgotten = _forgotten_with(connection, sources, {(row.tenant, row.source) for _, row in some})
        for text, row in some:
            # The gate is asked last: of a source that told most of it nothing comes so far.
            if (row.tenant, row.source) in forgotten or is_forgotten(connection, gate, row, row.value):
                continue
            if not row.is_fact:
                others.add(text)
            elif text not in versions or versions[text].version < row.version:
                versions[text] = row
    return Standing(versions=versions, others=others)


def put_again(connection: sa.Connection, gate: Gate, successors: Collection[Found]) -> None:
    """Write each version once more, as the newest and active one of its fact; none of these facts has one by now."""
    macs = {row: high_water_mac(gate, scope_of(row.tenant, row.user_id, row.project), row.key) for row in successors}
    rows = look_up(connection, _MAC, [(mac,) for mac in sorted(set(macs.values()))], _high_water)
    above = defaultdict(int, {row.key_mac: row.version for row in rows})
    again: list[Row] = [(row.tenant, row.fact_id, row.version, above[mac]) for row, mac in macs.items()]
    change(connection, _AGAIN, again, _as_newest)


def _forgotten_with(
    connection: sa.Connection, sources: Mapping[str, Collection[str]], told_by: Collection[tuple[str, str]]
) -> Collection[tuple[str, str]]:
    """Give those of the sources (tenant, id) that are forgotten, or were derived from one that is."""
    return {
        (tenant, source)
        for tenant, source in told_by
        if source in sources.get(tenant, ())
        or not ancestors_of(connection, tenant, source).isdisjoint(sources.get(tenant, ()))
    }


def _told(given: sa.FromClause) -> sa.CompoundSelect[Any]:
    """Read what is said under keys, and not revoked."""
    f, e, c, g = facts.c, preference_events.c, fact_candidates.c, given.c
    unexpired = f.expires > sa.cast(g.at_us, sa.Double()) / 1e6
    stays = (f.state != "revoked") & (f.confirmed == 1) & unexpired
    return sa.union_all(
        _of_keys(given, facts, f.fact_id, f.version, stays, is_fact=1),
        _of_keys(given, preference_events, e.handle, e.sequence, (e.state == "live") & e.value.is_not(None)),
        _of_keys(given, fact_candidates, c.handle, sa.literal(0, sa.BigInteger()), c.state == "pending"),
    )


def _of_keys(
    given: sa.FromClause,
    table: sa.Table,
    handle: sa.ColumnElement[str],
    version: sa.ColumnElement[int],
    stays: sa.ColumnElement[bool],
    *,
    is_fact: int = 0,
) -> sa.Select[Any]:
    c, g = table.c, given.c
    here = (c.tenant == g.tenant) & (c.user_id == g.user_id) & (c.project == g.project) & (c.key == g.key)
    kind: sa.ColumnElement[int] = sa.literal_column(str(is_fact), sa.BigInteger()).label("is_fact")
    named = (handle.label("fact_id"), version.label("version"), kind)
    said = (c.tenant, c.user_id, c.project, c.key, c.value, c.source)
    return sa.select(*said, *named).select_from(given.join(table, here & stays))


def _high_water(given: sa.FromClause) -> sa.Select[Any]:
    w = fact_high_water
    return sa.select(w).select_from(given.join(w, w.c.key_mac == given.c.key_mac))


def _as_newest(given: sa.FromClause) -> sa.Insert:
    f, g, every = facts.c, given.c, facts.alias("every")
    last = sa.select(sa.func.max(every.c.version)).where(every.c.tenant == f.tenant, every.c.fact_id == f.fact_id)
    highest = last.scalar_subquery()
    version = sa.case((highest > g.above, highest), else_=g.above) + 1
    one = sa.literal_column("1", sa.BigInteger())
    values = {"version": version, "confirmed": one, "active": one, "state": sa.literal_column("'live'", sa.Text())}
    same = (f.tenant == g.tenant) & (f.fact_id == g.fact_id) & (f.version == g.version)
    rows = sa.select(*(values.get(column.name, column) for column in facts.columns)).select_from(
        given.join(facts, same)
    )
    return facts.insert().from_select([column.name for column in facts.columns], rows)
