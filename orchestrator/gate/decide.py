"""The gate: one decision for every write of every writer, against tombstones that hold no text.

A writer calls `Gate.decide` inside its own write transaction with a lookup over the
tombstones that it can see; what is refused is counted by code and never logged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import Tombstone, TombstoneKind
from orchestrator.domain.scope import Scope
from orchestrator.gate.fingerprint import candidate_tokens, fold, keyed_hash
from orchestrator.gate.keyring import Keyring


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The registered source that a write names.

    `position` is its accepted position in the tenant; `ancestors` are all sources that it
    was derived from, transitively.
    """

    id: str
    position: int
    ancestors: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Write:
    """What somebody wants to store. `origin=None` says that the source was never registered.

    `confirmed` says that the authenticated user of this scope states it directly in `origin`,
    and that `origin` has not been used as a confirmation of this key before.
    """

    scope: Scope
    key: str | None
    text: str
    origin: Origin | None
    confirmed: bool = False


class TombstoneLookup(Protocol):
    """The tombstones that a writer can see."""

    def key_ids(self, tenant: str) -> Collection[str]:
        """Name every key under which the tenant has tombstones."""

    def matching(self, tenant: str, macs: Collection[str]) -> Iterable[Tombstone]:
        """Give the tenant's tombstones with one of these macs."""


class Gate:
    """Makes tombstones and compares writes with them, under the keys of one ring."""

    def __init__(self, keyring: Keyring) -> None:
        """Bind the gate to a ring."""
        self.keyring = keyring

    def decide(self, write: Write, tombstones: TombstoneLookup) -> Refusal | None:
        """Give the reason to refuse a write, or None where it is allowed."""
        tenant = write.scope.tenant
        if not self.keyring.key_ids.issuperset(tombstones.key_ids(tenant)):
            return Refusal.KEYRING_INCOMPLETE
        if write.origin is None:
            return Refusal.UNKNOWN_SOURCE
        probes = dict(self._probes(write, write.origin))
        found = list(tombstones.matching(tenant, probes.keys()))
        if any(t.kind is TombstoneKind.FACT_SOURCE and probes[t.mac] is t.kind for t in found):
            # Only a source that lost a fact pays for the hashes of every token of the text.
            tokens = dict(self._token_probes(write, write.origin))
            probes |= tokens
            found += tombstones.matching(tenant, tokens.keys())
        blocking = {t.kind for t in found if probes[t.mac] is t.kind and _blocks(t, write, write.origin)}
        return next((refusal for kind, refusal in _REFUSALS.items() if kind in blocking), None)

    def source_refused(self, tenant: str, ids: Collection[str], tombstones: TombstoneLookup) -> Refusal | None:
        """Give the reason to refuse the registration of a source with these ids (its own and its ancestors')."""
        if not self.keyring.key_ids.issuperset(tombstones.key_ids(tenant)):
            return Refusal.KEYRING_INCOMPLETE
        macs = {mac for i in ids for mac in self._under_every_key(tenant, TombstoneKind.SOURCE, tenant, i)}
        hit = any(t.kind is TombstoneKind.SOURCE for t in tombstones.matching(tenant, macs))
        return Refusal.SOURCE_TOMBSTONED if hit else None

    def for_source(self, tenant: str, source: str, cut_off: int) -> Tombstone:
        """Make the tombstone that blocks a source and all that is derived from it."""
        return self._make(tenant, TombstoneKind.SOURCE, cut_off, tenant, source)

    def for_subject(self, scope: Scope, cut_off: int) -> Tombstone:
        """Make the tombstone that blocks a user (or one project of a user) up to a position."""
        return self._make(scope.tenant, TombstoneKind.SUBJECT, cut_off, scope.tenant, scope.user, scope.project)

    def for_key(self, scope: Scope, key: str, cut_off: int) -> Tombstone:
        """Make the tombstone that blocks a key of a scope up to a position."""
        return self._make(scope.tenant, TombstoneKind.KEY, cut_off, scope.canonical(), key)

    def for_text(self, scope: Scope, key: str | None, text: str, cut_off: int) -> Tombstone:
        """Make the tombstone that blocks one text of a scope, from any source, unless freshly confirmed."""
        return self._make(scope.tenant, TombstoneKind.TEXT, cut_off, scope.canonical(), key, fold(text))

    def for_tokens(self, scope: Scope, source: str, tokens: Iterable[str], cut_off: int) -> Iterator[Tombstone]:
        """Make the tombstones that block what shares a distinctive token with a fact of a source."""
        yield self._make(scope.tenant, TombstoneKind.FACT_SOURCE, cut_off, scope.canonical(), source)
        for token in tokens:
            yield self._make(scope.tenant, TombstoneKind.SOURCE_TOKEN, cut_off, scope.canonical(), source, token)

    def handle(self, tenant: str, *parts: str | None) -> str:
        """Give 32 hex digits that name something without saying what: under the ring's oldest key.

        It does not change with rotation, so a store may use it in its own keys.
        """
        return keyed_hash(self.keyring.tenant_key(tenant, self.keyring.oldest), "handle", *parts)[:32]

    def _make(self, tenant: str, kind: TombstoneKind, cut_off: int, *parts: str | None) -> Tombstone:
        key_id = self.keyring.current
        mac = keyed_hash(self.keyring.tenant_key(tenant, key_id), kind.value, *parts)
        return Tombstone(kind=kind, key_id=key_id, mac=mac, cut_off=cut_off)

    def _under_every_key(self, tenant: str, kind: TombstoneKind, *parts: str | None) -> Iterator[str]:
        for key_id in self.keyring.key_ids:
            yield keyed_hash(self.keyring.tenant_key(tenant, key_id), kind.value, *parts)

    def _probes(self, write: Write, origin: Origin) -> Iterator[tuple[str, TombstoneKind]]:
        scope, tenant, place = write.scope, write.scope.tenant, write.scope.canonical()
        text = fold(write.text)
        wanted: list[tuple[TombstoneKind, tuple[str | None, ...]]] = [
            (TombstoneKind.SUBJECT, (tenant, scope.user, None)),
            (TombstoneKind.SUBJECT, (tenant, scope.user, scope.project)),
            # A text that was forgotten without a key is blocked under every key.
            (TombstoneKind.TEXT, (place, None, text)),
        ]
        if write.key is not None:
            wanted += [(TombstoneKind.KEY, (place, write.key)), (TombstoneKind.TEXT, (place, write.key, text))]
        for source in (origin.id, *origin.ancestors):
            wanted += [(TombstoneKind.SOURCE, (tenant, source)), (TombstoneKind.FACT_SOURCE, (place, source))]
        for kind, parts in wanted:
            for mac in self._under_every_key(tenant, kind, *parts):
                yield mac, kind

    def _token_probes(self, write: Write, origin: Origin) -> Iterator[tuple[str, TombstoneKind]]:
        place = write.scope.canonical()
        for source in (origin.id, *origin.ancestors):
            for token in candidate_tokens(write.text):
                for mac in self._under_every_key(write.scope.tenant, TombstoneKind.SOURCE_TOKEN, place, source, token):
                    yield mac, TombstoneKind.SOURCE_TOKEN


# In the order in which a refusal is named where several tombstones match.
_REFUSALS = {
    TombstoneKind.SOURCE: Refusal.SOURCE_TOMBSTONED,
    TombstoneKind.SUBJECT: Refusal.SUBJECT_TOMBSTONED,
    TombstoneKind.KEY: Refusal.KEY_TOMBSTONED,
    TombstoneKind.SOURCE_TOKEN: Refusal.TOKEN_TOMBSTONED,
    TombstoneKind.TEXT: Refusal.TEXT_TOMBSTONED,
}


def _blocks(tombstone: Tombstone, write: Write, origin: Origin) -> bool:
    """Tell whether a tombstone that matches also blocks: cut-offs are inclusive."""
    match tombstone.kind:
        case TombstoneKind.SUBJECT | TombstoneKind.KEY:
            return origin.position <= tombstone.cut_off
        case TombstoneKind.TEXT:
            fresh = write.confirmed and not origin.ancestors and origin.position > tombstone.cut_off
            return not fresh
        case _:
            return True
