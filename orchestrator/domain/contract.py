"""The adapter contract: what a storage must be able to do to take part in an erasure.

Principles: an adapter finds, erases and looks again in one storage, many orders at a time.
It reports what it did and what it sees, never what was expected. It erases by exact handles
with the tenant in the statement itself, never by a pattern. It looks again by another road
than the one it erased by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable
from uuid import UUID

from orchestrator.domain.codes import Residual
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector

MAX_PAGE = 1000
"""Targets in one order, and in one answer of find or revoke."""


class Role(StrEnum):
    """What a storage is to the data."""

    SOURCE = "source"  # data is first held here; it revokes
    DERIVED = "derived"  # copies, indexes, caches
    BACKUP = "backup"  # copies that may not be editable


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Something that one store holds of what is to go.

    `id` is the store's own handle: never a text, never a name of a person. `derived_of` is
    `kind:id` (or `kind:id@version`) of what it was made from.
    """

    kind: str
    id: str
    version: int = 0
    derived_of: str | None = None


class TombstoneKind(StrEnum):
    """What a tombstone is compared with."""

    SOURCE = "source"  # a source, or any that it was derived from
    SUBJECT = "subject"  # a user, or a user's project
    KEY = "key"  # a key of a scope
    TEXT = "text"  # one folded text of a scope
    SOURCE_TOKEN = "source_token"  # noqa: S105 - a kind of tombstone, not a secret: one distinctive token of a source
    FACT_SOURCE = "fact_source"  # marks a source that has source_token rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Tombstone:
    """A lasting, text-free marker that the gate compares a write with.

    `mac` is a keyed hash (64 hex digits) under the key `key_id`; `cut_off` an accepted
    position of the tenant, not a time.
    """

    kind: TombstoneKind
    key_id: str
    mac: str
    cut_off: int


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A keyed, text-free mark of 16 bytes of a value, by which a scan of files sees those bytes.

    `roll` is a signed 64-bit number, a rolling hash that is masked under a key; `mac` is a
    keyed hash (64 hex digits).
    """

    roll: int
    mac: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EraseOrder:
    """One unit of work for an adapter: a page of one job in one phase.

    `key` is the same for every repeat of the unit. `targets` is this adapter's page (erase,
    verify), `known` a page of what the last pass found in all stores (find) or of what the
    sources revoked (verify): a late copy has a handle of its own and is seen only by its
    lineage. `revision` is the source's scope revision after revoke, or None where none was
    raised (a preview, an expiry). `held` are ids of this store's records that a hold covers:
    revoke leaves them alone. `scheduled` are handles of copies whose window this job waits for:
    verify leaves out those copies, and no others. `cursor` is that of the answer before, where a
    find or revoke had more to tell. `attempt` counts the tries in a row from 1, `fence` grows with
    each claim of the unit. Be back before `deadline`.
    """

    job: UUID
    unit: UUID
    key: str
    scope: Scope
    selector: Selector
    known: tuple[Target, ...] = ()
    cursor: str | None = None
    targets: tuple[Target, ...] = ()
    revision: int | None = None
    held: frozenset[str] = frozenset()
    scheduled: frozenset[str] = frozenset()
    attempt: int = 1
    round: int = 1
    fence: int = 1
    deadline: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """Answer of find: at most 1,000 targets, and a cursor where there are more.

    `fingerprints` are of bytes that this store alone has, such as vectors. `no_lineage` counts
    derived things of this scope that name no origin: reported, never called clean.
    """

    targets: tuple[Target, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    no_lineage: int = 0
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Erased:
    """Answer of erase: what was done.

    `already_absent` counts targets looked up without any owner filter and not there; `extra`
    what arrived since find and was erased with the rest. `windows` names copies that cannot
    be edited and until when they live.
    """

    erased: int = 0
    already_absent: int = 0
    extra: int = 0
    windows: Mapping[str, datetime] = field(default_factory=dict)
    residuals: frozenset[Residual] = frozenset()
    unsupported: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Answer of verify: how many copies remain, or that the store could not be looked at."""

    remaining: int = 0
    inconclusive: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Revocation:
    """Answer of a source's revoke: the same for every repeat of one job.

    `targets` are all records that the selector names, those that another job has already
    revoked included. `revision` is the scope's revision afterwards. `left` names the items of
    `EraseOrder.held` that the selector names and that were left as they are: revoke is asked
    again when they are free, and then answers with them among the rest. `fingerprints` are
    those of the targets' values, `unprobed` counts the targets that have none: a scan of
    files cannot look for them.
    """

    targets: tuple[Target, ...] = ()
    left: frozenset[str] = frozenset()
    tombstones: tuple[Tombstone, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    unprobed: int = 0
    revision: int | None = None
    cursor: str | None = None


class Reach(StrEnum):
    """How far a look has reached."""

    LOGICAL = "logical"  # every path by which a user could read
    PHYSICAL = "physical"  # the bytes of the store's live files as well


class Scrubbed(StrEnum):
    """What a scrub came to."""

    CLEAN = "clean"  # the files were rewritten without what was deleted
    BUSY = "busy"  # somebody reads or writes: everything may still be there
    FAILED = "failed"  # it was begun, and how far it came is not known
    UNSUPPORTED = "unsupported"  # this store has no such means; the residuals say what stays


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrubReport:
    """Answer of scrub, and what stays although it went well."""

    outcome: Scrubbed
    residuals: frozenset[Residual] = frozenset()


class StorageAdapter(Protocol):
    """Finds, erases and looks again in one storage, many orders at a time.

    Every method may be called again with the same orders; it then reports what it sees now.
    It answers one result per order, in their order. No method blocks past `deadline`. Raise
    `Transient` when it may work later, `Permanent` when it never will; anything else counts
    as transient.
    """

    name: str
    role: Role
    max_batch: int

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List what this store holds of what is to go; reads only."""

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Erase exactly the targets of each order; an order without targets erases nothing."""

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Look again on a read path that neither find nor erase uses."""

    def close(self) -> None:
        """Give back connections; the adapter is not used afterwards."""


@runtime_checkable
class SourceAdapter(Protocol):
    """A storage in which data is first held: it stops handing it out before anything is erased."""

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        """Find, revoke, raise the revision and set tombstones, in one transaction per job."""


class PerOrder:
    """Base for an adapter whose store takes one order at a time: write the `_one` methods."""

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """Answer each order on its own."""
        return [self.find_one(order) for order in orders]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Answer each order on its own."""
        return [self.erase_one(order) for order in orders]

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Answer each order on its own."""
        return [self.verify_one(order) for order in orders]

    def find_one(self, order: EraseOrder) -> Holding:
        """List what this store holds for one order."""
        raise NotImplementedError

    def erase_one(self, order: EraseOrder) -> Erased:
        """Erase exactly the targets of one order."""
        raise NotImplementedError

    def verify_one(self, order: EraseOrder) -> Seen:
        """Look again for one order."""
        raise NotImplementedError
