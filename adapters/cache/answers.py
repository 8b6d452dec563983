"""The answer cache as a library: a fill that began before a revocation is refused by the fence, atomically."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import redis

from adapters.cache.keys import Keys, dump_origins
from orchestrator import Scope, Target

DEFAULT_TTL: Final = 86_400

# KEYS: fence, entry, set of entries, set of scopes. ARGV: revision, answer, scope handle, origins, seconds.
FILL: Final = """
if tonumber(redis.call('GET', KEYS[1]) or '-1') > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'answer', ARGV[2], 'scope', ARGV[3], 'made_from', ARGV[4], 'revision', ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[5])
redis.call('SADD', KEYS[3], KEYS[2])
redis.call('SADD', KEYS[4], ARGV[3])
return 1
"""


class AnswerCache:
    """Cached answers of a scope. Revisions are the source's: read one before the facts that an answer is made of."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._fill = client.register_script(FILL)

    def put(
        self,
        scope: Scope,
        question: str,
        answer: str,
        made_from: Iterable[Target],
        revision: int,
        ttl: int = DEFAULT_TTL,
    ) -> bool:
        """Store an answer for `ttl` seconds; False where the scope has changed since `revision`."""
        handle = self._keys.scope(scope)
        names = [
            self._keys.fence(scope, handle),
            self._keys.answer(scope, question),
            self._keys.entries(scope),
            self._keys.scopes(scope),
        ]
        return bool(self._fill(keys=names, args=[revision, answer, handle, dump_origins(made_from), ttl]))

    def get(self, scope: Scope, question: str) -> str | None:
        """Give the cached answer to a question of exactly this scope, or None."""
        value = self._client.hget(self._keys.answer(scope, question), "answer")
        return value.decode() if isinstance(value, bytes) else None
