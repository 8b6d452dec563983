"""The answer cache of an application: filled only by work that is as new as the scope's revision.

Principle: whoever fills an answer names the revision under which its facts were read. A
deletion job raises the fence before it removes anything, so a slow reader cannot put back
what was read before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import redis

from adapters.cache import lua
from adapters.cache.connection import translated
from adapters.cache.entry import origins, records_of
from adapters.cache.keys import Keys
from adapters.cache.options import KINDS
from orchestrator import Gate, InvalidRequest, Masters, Scope, Target

DAY: Final = 86_400.0
LONGEST: Final = 36_525 * DAY
"""Seconds; a server can tell no time that is much later."""


class AnswerCache:
    """Answers to questions, each in exactly one scope. Do not let Redis evict keys that have no expiry."""

    def __init__(
        self,
        client: redis.Redis,
        gate: Gate,
        prefix: str = "cache",
        masters: Masters | None = None,
        *,
        kinds: Collection[str] = KINDS,
    ) -> None:
        """Bind the cache to a client, which stays the caller's to close, and to the source of its records.

        `kinds` are those of the records that an answer may be made from.
        """
        self._keys, self._masters, self._kinds = Keys(gate=gate, prefix=prefix), masters, kinds
        self._client = client
        self._fill = client.register_script(lua.FILL)

    def put(
        self,
        scope: Scope,
        question: str,
        answer: str,
        made_from: Sequence[Target],
        revision: int,
        ttl: float = DAY,
    ) -> bool:
        """Keep an answer for `ttl` seconds, at most `LONGEST`; False if the scope has changed since `revision`.

        Read the revision before the facts: `MemoryStore.revision_for_answers`. `made_from` names
        everything that went into the answer: what is not named is not found when it is to go, so an
        answer that names nothing, or a record of a kind that no store has, is an `InvalidRequest`.
        Raises `StoreUnreachable`, and `Transient` where the server refuses: then nothing may be kept.
        """
        self._check_origins(made_from)
        if revision < 0:
            message = "revision must be 0 or more: what `MemoryStore.revision_for_answers` gives"
            raise InvalidRequest(message, field="revision")
        if not 0 < ttl <= LONGEST:  # what is no number is neither
            raise InvalidRequest(f"ttl must be more than 0 and at most {LONGEST:.0f} seconds", field="ttl")
        subject, handle = self._keys.subject(scope), self._keys.scope(scope)
        fences = [subject.fence(handle), subject.fence(self._keys.scope(replace(scope, project=None)))]
        keys = [self._keys.entry(scope, question), *fences, subject.members, subject.scopes]
        lasts_ms = max(1, round(ttl * 1000))
        with translated():
            return bool(self._fill(keys=keys, args=[revision, lasts_ms, handle, answer, origins(made_from)]))

    def get(self, scope: Scope, question: str) -> str | None:
        """Give the answer to a question of exactly this scope, or None.

        With masters it is given only while everything that it was made from is handed out, in this
        scope or in that of the user in general; without them until a job has erased it. Raises
        `StoreUnreachable` and `Transient`, those of the masters included.
        """
        with translated():
            found, made_from = self._client.hmget(self._keys.entry(scope, question), "answer", "made_from")
        if found is None or not self._holds(scope, made_from):
            return None
        return found.decode() if isinstance(found, bytes) else str(found)

    def _check_origins(self, made_from: Sequence[Target]) -> None:
        if not made_from:
            message = "made_from must name what the answer was made from: without it no job finds the answer"
            raise InvalidRequest(message, field="made_from")
        if any(target.kind not in self._kinds for target in made_from):
            message = (
                f"made_from names a kind that no store has (known: {', '.join(sorted(self._kinds))}); kinds of a store "
                "of your own go into [adapters.cache] other_kinds"
            )
            raise InvalidRequest(message, field="made_from")

    def _holds(self, scope: Scope, made_from: bytes | str | None) -> bool:
        if self._masters is None:
            return True
        records = records_of(made_from)
        places = {scope, replace(scope, project=None)}
        active = {record for place in places for record in self._masters.active(place, records)}
        # What names no origin may have been made from anything.
        return bool(records) and active.issuperset(records)
