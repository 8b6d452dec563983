"""Facts read as items, with the times that are known of them: when their sources were accepted.

Principles: what `current` of the memory store would not give is no item; the tenant stands in each
statement. A fact of the same scope that no graph has put is none either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import sqlalchemy as sa
from langgraph.store.base import Item

from adapters.langgraph.names import names_of
from adapters.langgraph.values import value_of
from adapters.memory.batch import Found
from adapters.memory.facts import place_of
from adapters.memory.instant import EPOCH
from adapters.memory.tables import accepted_sources, facts
from orchestrator import Scope

_f: Final = facts.c
_told: Final = facts.alias("told")
_first: Final = accepted_sources.alias("first")
_last: Final = accepted_sources.alias("last")
# A version that was revoked is not told about, not even by its time.
_CREATED: Final = (
    sa.select(sa.func.min(_first.c.accepted_at_us))
    .join(_told, (_first.c.tenant == _told.c.tenant) & (_first.c.source_id == _told.c.source))
    .where(_told.c.tenant == _f.tenant, _told.c.user_id == _f.user_id, _told.c.project == _f.project)
    .where(_told.c.key == _f.key, _told.c.state != "revoked")
    .correlate(facts)
    .scalar_subquery()
)
_ITEMS: Final = (
    sa.select(_f.key, _f.value, _CREATED.label("created_us"), _last.c.accepted_at_us.label("updated_us"))
    .join_from(facts, _last, (_last.c.tenant == _f.tenant) & (_last.c.source_id == _f.source))
    .where(_f.active == 1, _f.confirmed == 1)
)


def all_items(connection: sa.Connection, scope: Scope, now: float) -> list[Item]:
    """Give the items of exactly this scope that expire after `now`, by namespace and key."""
    return sorted(_read(connection, _here(scope, now)), key=lambda item: (item.namespace, item.key))


def items_of(connection: sa.Connection, scope: Scope, keys: Iterable[str], now: float) -> list[Item]:
    """Give those of the items that these keys of facts name, each found by itself."""
    here = _here(scope, now)
    return [item for key in keys for item in _read(connection, here.where(_f.key == key))]


def _here(scope: Scope, now: float) -> sa.Select[tuple[str, str, int, int]]:
    place = place_of(scope)
    mine = (_f.tenant == place["tenant"], _f.user_id == place["user_id"], _f.project == place["project"])
    return _ITEMS.where(*mine, _f.expires > now)


def _read(connection: sa.Connection, query: sa.Select[tuple[str, str, int, int]]) -> Iterator[Item]:
    for row in connection.execute(query):
        if (item := _item(row)) is not None:
            yield item


def _item(row: Found) -> Item | None:
    names, value = names_of(row.key), value_of(row.value)
    if names is None or value is None:
        return None
    namespace, key = names
    created, updated = (EPOCH + timedelta(microseconds=us) for us in (row.created_us, row.updated_us))
    return Item(value=value, key=key, namespace=namespace, created_at=created, updated_at=updated)
