"""The answer cache under the adapter contract.

Principles: no call begins after an order's deadline, and a long one stops at it; an order
without targets removes nothing; log lines carry ids and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import redis

from adapters.cache import erase as erasing
from adapters.cache import find as finding
from adapters.cache import options as settings
from adapters.cache import verify as verifying
from adapters.cache.cache import AnswerCache
from adapters.cache.connection import Connection, translated
from adapters.cache.keys import Keys
from adapters.cache.physical import ServerFiles
from orchestrator import AdapterContext, Erased, EraseOrder, Holding, InFiles, Masters, Role, Seen


class CacheAdapter(InFiles):
    """Answers that were made from facts. `answers` is the library that applications fill and ask."""

    name = settings.NAME
    role = Role.DERIVED
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the server is reached for by the first call."""
        chosen = settings.read(options)
        self._context = context
        self._keys = Keys(gate=context.gate, prefix=chosen.prefix)
        self._kinds = settings.KINDS | set(chosen.other_kinds.split(",") if chosen.other_kinds else ())
        timeout = context.call_timeout.total_seconds() if chosen.timeout is None else chosen.timeout
        self._connection = Connection(chosen.url, timeout=timeout, state_dir=context.state_dir)
        self._files = ServerFiles(
            client=self._connection.client,
            keys=self._keys,
            folder=chosen.data_dir,
            context=context,
        )

    @property
    def answers(self) -> AnswerCache:
        """Give the cache for what fills it; raises `StoreUnreachable` while the embedded server is not running."""
        return AnswerCache(self.client(), self._keys.gate, self._keys.prefix, kinds=self._kinds)

    def guarded(self, masters: Masters) -> AnswerCache:
        """Give the cache for readers: nothing that its source has revoked is answered, though it is there still."""
        return AnswerCache(self.client(), self._keys.gate, self._keys.prefix, masters, kinds=self._kinds)

    def client(self) -> redis.Redis:
        """Give the client of the server, which the adapter closes."""
        return self._connection.client()

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List the entries made from what is known, or all of the scope for a subject; reads only."""
        in_time = self._timekeeper(orders)
        with translated():
            client = self._connection.client()
            return finding.find(client, self._keys, orders, in_time)

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Raise the fences of the scopes, then remove exactly the targets of each order."""
        in_time = self._timekeeper(orders)
        with translated():
            client = self._connection.client()
            answers = erasing.erase(client, self._keys, orders, in_time)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("answers.erased", job_id=str(order.job), erased=answer.erased)
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by a walk over the whole cache."""
        in_time = self._timekeeper(orders)
        with translated():
            client = self._connection.client()
            return verifying.verify(client, self._keys, orders, in_time)

    def close(self) -> None:
        """Give back connections."""
        self._connection.close()

    def _timekeeper(self, orders: Sequence[EraseOrder]) -> Callable[[], None]:
        """Give what is called before every round trip; it is called once here."""
        in_time = partial(self._context.in_time, orders)
        in_time()
        return in_time
