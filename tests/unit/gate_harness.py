"""Tombstones in memory, and writes that a gate decides about."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from orchestrator.domain.contract import Tombstone
from orchestrator.domain.scope import Scope
from orchestrator.gate.decide import Gate, Origin, Write
from orchestrator.gate.keyring import Keyring

RING = Keyring(current="tk-1", keys={"tk-1": bytes(range(32))})
ROTATED = RING.rotate()
GATE = Gate(RING)
HOME = Scope(tenant="t", user="u", project="p")
CUT_OFF = 10


@dataclass
class Stones:
    """Tombstones of several tenants, kept in memory; notes what it was asked."""

    rows: list[tuple[str, Tombstone]] = field(default_factory=list)
    asked: list[set[str]] = field(default_factory=list)

    def add(self, *stones: Tombstone, tenant: str = "t") -> Stones:
        self.rows += [(tenant, stone) for stone in stones]
        return self

    def key_ids(self, tenant: str) -> Collection[str]:
        return {stone.key_id for owner, stone in self.rows if owner == tenant}

    def matching(self, tenant: str, macs: Collection[str]) -> Iterable[Tombstone]:
        self.asked.append(set(macs))
        return [stone for owner, stone in self.rows if owner == tenant and stone.mac in macs]


def origin(name: str = "m-new", position: int = CUT_OFF + 1, *ancestors: str) -> Origin:
    return Origin(id=name, position=position, ancestors=frozenset(ancestors))


def write(
    text: str = "dark",
    *,
    key: str | None = "theme",
    scope: Scope = HOME,
    source: Origin | None = None,
    confirmed: bool = False,
) -> Write:
    return Write(scope=scope, key=key, text=text, origin=source or origin(), confirmed=confirmed)


def elsewhere(*, tenant: str = "t", user: str = "u", project: str | None = "p") -> Scope:
    return Scope(tenant=tenant, user=user, project=project)


def lost_passport(gate: Gate = GATE) -> list[Tombstone]:
    return list(gate.for_tokens(HOME, "m-1", ["nx4711", "utrecht"], CUT_OFF))
