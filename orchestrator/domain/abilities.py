"""What an adapter may be able to do besides: each is a protocol of its own, and whoever has its methods has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import UUID

from orchestrator.domain.contract import ScrubReport, Seen, Target, Tombstone
from orchestrator.domain.scope import Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired:
    """A scope in which something has expired. `mark` is a text-free sign that changes with what that is."""

    scope: Scope
    mark: str


@runtime_checkable
class ExpiringSource(Protocol):
    """A source whose records have an end.

    What has expired is hidden from every read by the source itself, from that instant on. A
    revoke of a selector `expired` names what has expired in its own transaction, raises no
    revision, and its tombstones let a new message bring the same again.
    """

    def expired(self) -> Iterable[Expired]:
        """Name the scopes in which something has expired and was not revoked yet; reads only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """What bringing a restored source up to date came to.

    `erased` are the records of it that had been forgotten and went, `jobs` all whose revocations it holds.
    """

    erased: int
    jobs: frozenset[UUID] = frozenset()


@runtime_checkable
class RestorableSource(Protocol):
    """A source that can be put back to an earlier state without bringing anybody back.

    It keeps an epoch, which every restore raises here and in the control database: where the two
    differ, it gives nothing out and takes nothing in (`StaleSource`).
    """

    def restore(
        self,
        copy: Path | None,
        tombstones: Iterable[tuple[str, UUID, Tombstone]],
        epoch: Callable[[], int],
        targets: Iterable[tuple[UUID, Target]] = (),
        kept: Iterable[tuple[UUID, str]] = (),
    ) -> Replayed:
        """Put a copy in the place of what is there, as one step that other processes see; None: it is there already.

        `epoch` begins the next one and gives it: it is called when the copy was found to be sound.
        `tombstones` are read after that, and `targets`: what the source had named to jobs that go on. `kept` are the
        items that such a job has left because of a hold: its tombstones do not take them, and it takes them later.

        Before anybody can read it, all tombstones (each with its tenant and job) are merged, every
        record that one of them matches is erased with what was made from it, positions and
        revisions begin above all that were ever given, and the epoch is written.
        """


@runtime_checkable
class PhysicalStore(Protocol):
    """A storage whose bytes can be looked at.

    `file_group` names its files: adapters whose bytes share files give the same name, and one
    scrub of them runs at a time. A scrub is done once for many jobs, and a scan after it looks
    for all of them.
    """

    file_group: str

    def scrub(self) -> ScrubReport:
        """Rewrite the files without what was deleted: VACUUM, checkpoint, rewrite of logs."""

    def live_files(self) -> AbstractContextManager[Sequence[Path]]:
        """Give every file that the store keeps, sidecars and logs included, and keep them still meanwhile."""

    def live_values(self) -> Iterable[bytes]:
        """Give the values of all live records, as the files hold them: bytes that others hold too are no residue."""

    def plant(self, marker: bytes) -> None:
        """Store 32 bytes of ASCII as a live record; those of an earlier scan that has died are taken away."""

    def uproot(self, marker: bytes) -> None:
        """Take a marker away."""


class Masters(Protocol):
    """A source of records, as a derived store asks it: nothing is written or given out that was made from any other.

    The store asks inside its write, behind a lock that its look takes as well. So whoever was let in before the
    source revoked has committed before that look, and whoever comes later is refused.
    """

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        """Give those of the records that the source hands out in exactly this scope now, with the scope's revision.

        A revision grows with each change of a scope. Raises `Transient` where the source does not answer.
        """


class InFiles:
    """Base for an adapter that leaves its files to a part of it, `_files`: that is asked what a `PhysicalStore` is."""

    _files: PhysicalStore

    @property
    def file_group(self) -> str:
        """Name the files."""
        return self._files.file_group

    def scrub(self) -> ScrubReport:
        """Rewrite the files without what was deleted."""
        return self._files.scrub()

    def live_files(self) -> AbstractContextManager[Sequence[Path]]:
        """Give the files, and keep them still meanwhile."""
        return self._files.live_files()

    def live_values(self) -> Iterable[bytes]:
        """Give the values of all live records."""
        return self._files.live_values()

    def plant(self, marker: bytes) -> None:
        """Store a marker of a scan."""
        self._files.plant(marker)

    def uproot(self, marker: bytes) -> None:
        """Take a marker away."""
        self._files.uproot(marker)


@runtime_checkable
class WindowStore(Protocol):
    """A storage with copies that cannot be edited, such as backups: each dies when its time is over."""

    def closed(self, handles: Sequence[str]) -> Sequence[Seen]:
        """Tell of each copy whether it is gone: nothing remains only where it was seen to be gone."""
