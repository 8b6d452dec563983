"""Facts with versions: storing one, and reading the current ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import sqlalchemy as sa

from adapters.memory.batch import columns, look_up, raise_numbers
from adapters.memory.gate import pass_gate
from adapters.memory.tables import USER_WIDE, fact_high_water, fact_revisions, facts
from adapters.memory.versions import KeyState, Newest
from orchestrator import Gate, InvalidRequest, Scope, Selector, SelectorKind

MAX_VALUE: Final = 2000
SCOPE: Final = columns(tenant=str, user_id=str, project=str)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A fact as it is handed out. `expires` is in seconds since 1970, infinite where it never does."""

    id: str
    key: str
    version: int
    value: str = field(repr=False)
    source: str
    expires: float


def put(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    key: str,
    value: str,
    source: str,
    *,
    expires: float,
    confirmed: bool,
    user_statement: bool,
    said_at: Scope | None = None,
    expected_version: int | None = None,
) -> int:
    """Ask the gate, replace the active version, raise the revision: all of it in the caller's transaction.

    Nobody else writes in it, so what is compared with `expected_version` is what is replaced.
    """
    check(key, value, source, expires)
    pass_gate(connection, gate, scope, key, value, source, user_statement=user_statement, said_at=said_at)
    last = newest(connection, gate, scope, key)
    if expected_version is not None:
        last.expect(expected_version)
    version = last.version + 1
    connection.execute(
        facts.update().where(*_of_key(scope, key), facts.c.active == 1).values(active=0, state="replaced")
    )
    connection.execute(
        facts.insert().values(
            **place_of(scope),
            key=key,
            version=version,
            fact_id=last.fact_id,
            value=value,
            source=source,
            confirmed=int(confirmed),
            expires=expires,
            active=1,
            state="live",
        )
    )
    raise_revision(connection, [scope])
    return version


def current(connection: sa.Connection, scope: Scope, now: float) -> list[Fact]:
    """Give the active, confirmed, unexpired facts of exactly this scope, by key."""
    f = facts.c
    query = (
        sa.select(f.fact_id.label("id"), f.key, f.version, f.value, f.source, f.expires)
        .where(f.tenant == scope.tenant, f.user_id == scope.user, f.project == (scope.project or USER_WIDE))
        .where(f.active == 1, f.confirmed == 1, f.expires > now)
        .order_by(f.key)
    )
    return [Fact(**row) for row in connection.execute(query).mappings()]


def revision(connection: sa.Connection, scope: Scope) -> int:
    """Give the scope's revision, 0 where nothing was ever stored."""
    return revisions(connection, [scope]).get(scope, 0)


def revisions(connection: sa.Connection, scopes: Iterable[Scope]) -> dict[Scope, int]:
    """Give the revisions of the scopes in which something was ever stored."""
    rows = look_up(connection, SCOPE, [tuple(place_of(scope).values()) for scope in set(scopes)], _revisions)
    return {scope_of(row.tenant, row.user_id, row.project): row.rev for row in rows}


def raise_revision(connection: sa.Connection, scopes: Iterable[Scope]) -> int:
    """Raise the revisions of scopes that change together to one number above all of theirs, and give it."""
    changed = set(scopes)
    raised = max(revisions(connection, changed).values(), default=0) + 1
    store_revisions(connection, dict.fromkeys(changed, raised))
    return raised


def store_revisions(connection: sa.Connection, raised: Mapping[Scope, int]) -> None:
    """Write revisions that were raised: a revision never falls."""
    raise_numbers(connection, fact_revisions, [(*place_of(scope).values(), rev) for scope, rev in raised.items()])


def newest(connection: sa.Connection, gate: Gate, scope: Scope, key: str) -> Newest:
    """Tell where a key of exactly this scope stands."""
    f = facts.c
    query = sa.select(f.fact_id, f.version, f.active, f.state).where(*_of_key(scope, key))
    last = connection.execute(query.order_by(f.version.desc()).limit(1)).first()
    erased = high_water(connection, gate, scope, key)
    if last is None:
        state = KeyState.ERASED if erased else KeyState.NONE
        return Newest(version=erased, state=state, fact_id=str(uuid4()))
    if last.active and last.version > erased:
        state = KeyState.ACTIVE
    else:
        state = KeyState.REVOKED if last.state == "revoked" else KeyState.ERASED
    return Newest(version=max(last.version, erased), state=state, fact_id=last.fact_id)


def high_water(connection: sa.Connection, gate: Gate, scope: Scope, key: str) -> int:
    """Give the highest version of a key that was ever erased."""
    mac = high_water_mac(gate, scope, key)
    return connection.scalar(sa.select(fact_high_water.c.version).where(fact_high_water.c.key_mac == mac)) or 0


def high_water_mac(gate: Gate, scope: Scope, key: str) -> str:
    """Name a key of a scope without saying which."""
    return gate.handle(scope.tenant, "high-water", scope.canonical(), key)


def place_of(scope: Scope) -> dict[str, str]:
    """Give the three columns of a scope."""
    return {"tenant": scope.tenant, "user_id": scope.user, "project": scope.project or USER_WIDE}


def scope_of(tenant: str, user: str, project: str) -> Scope:
    """Give the scope of three columns."""
    return Scope(tenant=tenant, user=user, project=project or None)


def check(key: str, value: str, source: str, expires: float) -> None:
    """Raise `InvalidRequest`, a `ValueError`, for what may not be stored. Never repeats the value."""
    check_names(key, source)
    check_value(value)
    if isinstance(expires, bool) or not isinstance(expires, int | float) or math.isnan(expires):
        message = "expires must be a number of seconds"
        raise InvalidRequest(message, field="expires")


def check_names(key: str, source: str) -> None:
    """Raise `InvalidRequest` for a key or source that no selector could name: such a thing is never stored."""
    Selector(kind=SelectorKind.KEY, value=key)
    Selector(kind=SelectorKind.SOURCE, value=source)


def check_value(value: str) -> None:
    """Raise `InvalidRequest` for a value that may not be stored. Never repeats it."""
    check_text("value", value, MAX_VALUE)


def check_text(field: str, text: object, longest: int) -> None:
    """Raise `InvalidRequest` unless this is a text that is not blank and that both databases can store."""
    if not isinstance(text, str) or not text.strip() or len(text) > longest:
        raise InvalidRequest(f"{field} must be a text of 1 to {longest} characters, not all blank", field=field)
    if "\0" in text:
        raise InvalidRequest(f"{field} must not hold a NUL character, which PostgreSQL cannot store", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{field} must be valid Unicode", field=field) from None


def _of_key(scope: Scope, key: str) -> tuple[sa.ColumnElement[bool], ...]:
    f, place = facts.c, place_of(scope)
    return f.tenant == scope.tenant, f.user_id == scope.user, f.project == place["project"], f.key == key


def _revisions(given: sa.FromClause) -> sa.Select[Any]:
    r, o = fact_revisions.c, given.c
    here = (r.tenant == o.tenant) & (r.user_id == o.user_id) & (r.project == o.project)
    return sa.select(fact_revisions).select_from(given.join(fact_revisions, here))
