"""The backups under the adapter contract: looked into like any other store, and rewritten or left to their time.

Principles: no call begins after an order's deadline, and no copy is moved into place after it;
a copy that was begun is never missed; log lines carry handles, ids and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from adapters.backup import erase as erasing
from adapters.backup import find as finding
from adapters.backup import options as settings
from adapters.backup import take as taking
from adapters.backup import verify as verifying
from adapters.backup.errors import translated
from adapters.backup.folder import Folder
from adapters.backup.manifest import Copy, Manifest, Policy
from adapters.backup.physical import CopiesFiles
from adapters.backup.revoked import cut_offs, revoked
from adapters.backup.standing import Standing, standing
from adapters.backup.unseen import Unseen, unseen
from adapters.backup.windows import Windows
from orchestrator import AdapterContext, Erased, EraseOrder, Holding, InFiles, InvalidRequest, Role, Seen


class BackupAdapter(InFiles):
    """Copies of the source database in a folder with a manifest; `take` and `copies` are for people and schedules."""

    name = settings.NAME
    role = Role.BACKUP
    max_batch = 50

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the folder is looked at by the first call."""
        self._context = context
        chosen = settings.read(options, context.state_dir)
        self._source = chosen.source
        is_ours = chosen.manifest.is_relative_to(context.state_dir.resolve())
        self._folder = Folder(chosen.manifest, is_ours=is_ours)
        self._windows = Windows(self._folder)
        self._files = CopiesFiles(self._folder, context.call_timeout)

    def take(self, policy: Policy = Policy.REWRITE, keep_until: datetime | None = None) -> Copy:
        """Take a copy of the source database; a copy with the policy window goes at `keep_until`.

        Raises `InvalidRequest` for a time that does not fit the policy and for a source that is no source
        database, `StoreLocked` while others use the folder, and `StoreUnreachable`.
        """
        with translated():
            copy = taking.take(
                self._folder,
                self._source,
                policy=policy,
                keep_until=keep_until,
                now=self._context.clock.now(),
                until=self._until([]),
            )
        self._context.log.info("copy.taken", handle=copy.handle, policy=copy.policy.value, bytes=copy.bytes)
        return copy

    def copies(self) -> Standing:
        """Tell of each copy of the manifest whether its file is there, and how many files it does not name."""
        with translated(), self._folder.shared(self._until([])) as known:
            return standing(self._folder, known, self._context.clock.now())

    def path_of(self, handle: str) -> Path:
        """Give the file of a copy; raises `InvalidRequest` where it is not there."""
        with translated(), self._folder.shared(self._until([])) as known:
            return self._there(known, handle)

    def unseen(self, handle: str) -> Sequence[Unseen]:
        """Give the tombstones that were set since a copy was taken; raises `InvalidRequest` where it is not there."""
        with translated(), self._folder.shared(self._until([])) as known:
            return unseen(self._there(known, handle), self._source, wait=self._left([]))

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List the copies that hold what each order names; reads only."""
        in_time = self._timekeeper(orders)
        with translated(), self._folder.shared(self._until(orders)) as known:
            return finding.find(self._folder, known, orders, self._cut_offs(orders), in_time)

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Rewrite exactly the copies of each order without what it names, each copy once for all orders."""
        in_time = self._timekeeper(orders)
        with translated(), self._folder.alone(self._until(orders)) as known:
            jobs = {order.job for order in orders if order.targets}
            records = revoked(self._source, jobs, wait=self._left(orders)) if jobs else {}
            answers = erasing.erase(
                self._folder,
                self._windows,
                known,
                orders,
                records,
                self._cut_offs(orders),
                now=self._context.clock.now(),
                in_time=in_time,
                tell=lambda handle: self._context.log.warning("copy.refused", handle=handle),
                gate=self._context.gate,
            )
        for order, answer in zip(orders, answers, strict=True):
            facts = {"erased": answer.erased, "scheduled": len(answer.windows)}
            self._context.log.info("copies.rewritten", job_id=str(order.job), **facts)
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count the files in the folder that still hold what each order names, those without an entry included."""
        in_time = self._timekeeper(orders)
        with translated(), self._folder.shared(self._until(orders)) as known:
            scheduled = self._windows.open_for({order.job for order in orders}, self._context.clock.now())
            return verifying.verify(self._folder, known, orders, scheduled, self._cut_offs(orders), in_time)

    def closed(self, handles: Sequence[str]) -> Sequence[Seen]:
        """Tell of each copy with a window whether it is seen to be gone: its time over, and its file not there."""
        with translated(), self._folder.shared(self._until([])) as known:
            return self._windows.closed(known, handles, self._context.clock.now())

    def close(self) -> None:
        """Give back nothing: between two calls nothing is open."""

    def _cut_offs(self, orders: Sequence[EraseOrder]) -> Mapping[UUID, int]:
        return cut_offs(self._source, {order.job for order in orders}, wait=self._left(orders))

    def _there(self, known: Manifest, handle: str) -> Path:
        copy = known.of(handle)
        if copy is None or self._folder.is_gone(copy.file):
            message = "there is no copy of that handle: `expunge backup list` names them"
            raise InvalidRequest(message, field="copy")
        return self._folder.path_of(copy.file)

    def _timekeeper(self, orders: Sequence[EraseOrder]) -> Callable[[], None]:
        """Give what is called before every copy; it is called once here."""
        in_time = partial(self._context.in_time, orders)
        in_time()
        return in_time

    def _until(self, orders: Sequence[EraseOrder]) -> float:
        """Give the monotonic time until which a lock may be waited for: no longer than the first deadline allows."""
        return time.monotonic() + self._left(orders)

    def _left(self, orders: Sequence[EraseOrder]) -> float:
        now = self._context.clock.now()
        left = min(((order.deadline - now).total_seconds() for order in orders), default=float("inf"))
        return max(0.0, min(left, self._context.call_timeout.total_seconds()))
