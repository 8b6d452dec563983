"""The cache under the adapter contract.

Principles: the fence is raised before anything is unlinked, so that no late fill can follow;
erase unlinks exact keys of this user alone; verify never reads the sets that find reads, it
scans the whole prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import redis
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from redis.backoff import NoBackoff
from redis.retry import Retry

from adapters.cache.answers import AnswerCache
from adapters.cache.keys import Keys, load_origins, origin
from orchestrator import (
    MAX_PAGE,
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    ErrorCode,
    Holding,
    InvalidRequest,
    Role,
    Scope,
    Seen,
    SelectorKind,
    StoreUnreachable,
    Target,
    Transient,
)

NAME: Final = "cache"
PORT_FILE: Final = "cache.port"
KIND: Final = "cache_key"
CHUNK: Final = 500

# KEYS: fence. ARGV: revision. Never lowers a fence that is higher.
RAISE: Final = """
if tonumber(redis.call('GET', KEYS[1]) or '-1') < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
"""


class Options(BaseModel):
    """What an operator may set for this adapter."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field(default="redis://127.0.0.1:0/0", pattern=r"^rediss?://", description="port 0: the embedded server")
    prefix: str = Field(default="cache", pattern=r"^[a-z0-9-]{1,32}$", description="what every key begins with")
    timeout: float = Field(default=5, gt=0, le=60, description="seconds to wait for one answer")


class CacheAdapter:
    """Cached answers, found by what they were made from. `answers` is the library that applications use."""

    name = NAME
    role = Role.DERIVED
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the connection is opened by the first call."""
        self._options = _options(options)
        self._context = context
        self._keys = Keys(context.gate, self._options.prefix)
        self._client: redis.Redis | None = None

    @property
    def answers(self) -> AnswerCache:
        """The cache as a library."""
        return AnswerCache(self.client(), self._keys)

    def client(self) -> redis.Redis:
        """Give the connection; raises `StoreUnreachable` where the embedded server was never started."""
        if self._client is None:
            wait = self._options.timeout
            self._client = redis.Redis.from_url(
                self._url(), socket_timeout=wait, socket_connect_timeout=wait, retry=Retry(NoBackoff(), 1)
            )
        return self._client

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List each user's entries that were made from what is known; reads only."""
        with self._translated(orders):
            client = self.client()
            with client.pipeline(transaction=False) as pipe:
                for order in orders:
                    pipe.smembers(self._keys.entries(order.scope))
                members = [sorted(found) for found in pipe.execute()]
            told = iter(_read(client, [key for found in members for key in found]))
            return [
                self._holding(o, [(key, next(told)) for key in found]) for o, found in zip(orders, members, strict=True)
            ]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Raise the fences, then unlink exactly the targets that are this user's own."""
        with self._translated(orders):
            client = self.client()
            self._raise_fences(client, orders)
            answers = []
            with client.pipeline(transaction=False) as pipe:
                for order in orders:
                    for key in self._own(order):
                        pipe.unlink(key)
                        pipe.srem(self._keys.entries(order.scope), key)
                told = iter(pipe.execute()[::2])
            for order in orders:
                erased = sum(next(told) for _ in self._own(order))
                answers.append(Erased(erased=erased, already_absent=len(order.targets) - erased))
                self._context.log.info("answers.erased", job_id=str(order.job), erased=erased)
            return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Scan the whole prefix once for all orders, and count what is left of each."""
        with self._translated(orders):
            client = self.client()
            bases = {self._keys.base(o.scope.tenant, o.scope.user).encode() for o in orders}
            wanted = {target.id.encode() for order in orders for target in order.targets}
            prefix = f"{self._options.prefix}:".encode()
            seen = sorted(
                {
                    key
                    for key in client.scan_iter(match=prefix + b"*", count=1000, _type="hash")
                    if key in wanted or any(key.startswith(base) for base in bases)
                }
            )
            entries = dict(zip(seen, _read(client, seen), strict=True))
            return [Seen(remaining=self._remaining(order, entries)) for order in orders]

    def close(self) -> None:
        """Give back connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _url(self) -> str:
        if ":0/" not in self._options.url:
            return self._options.url
        try:
            port = int((self._context.state_dir / PORT_FILE).read_text())
        except (OSError, ValueError):
            message = "the embedded cache is not running: start it with `expunge up`"
            raise StoreUnreachable(message) from None
        return self._options.url.replace(":0/", f":{port}/", 1)

    def _holding(self, order: EraseOrder, entries: Sequence[tuple[bytes, Sequence[bytes | None]]]) -> Holding:
        targets, nameless = [], 0
        for key, (handle, made_from) in entries:
            if handle is None or not self._covers(order.scope, handle):
                continue
            origins = load_origins(made_from)
            hit = next(iter(sorted(origins & _lineage(order))), None)
            if hit is not None or order.selector.kind is SelectorKind.SUBJECT:
                targets.append(Target(kind=KIND, id=key.decode(), derived_of=hit))
            elif not origins:
                nameless += 1
        start = int(order.cursor or 0)
        more = start + MAX_PAGE < len(targets)
        return Holding(
            targets=tuple(targets[start : start + MAX_PAGE]),
            no_lineage=nameless,
            cursor=str(start + MAX_PAGE) if more else None,
        )

    def _covers(self, scope: Scope, handle: bytes) -> bool:
        return scope.project is None or handle.decode() == self._keys.scope(scope)

    def _own(self, order: EraseOrder) -> list[str]:
        """Give the targets that are this user's own: a handle of anybody else's counts as absent."""
        base = self._keys.base(order.scope.tenant, order.scope.user) + "a:"
        return [target.id for target in order.targets if target.kind == KIND and target.id.startswith(base)]

    def _raise_fences(self, client: redis.Redis, orders: Sequence[EraseOrder]) -> None:
        raised = client.register_script(RAISE)
        for order in orders:
            if order.revision is None:
                continue
            handles = {self._keys.scope(order.scope)}
            if order.scope.project is None:
                handles = {_text(handle) for handle in client.smembers(self._keys.scopes(order.scope))}
            for handle in sorted(handles):
                raised(keys=[self._keys.fence(order.scope, handle)], args=[order.revision])

    def _remaining(self, order: EraseOrder, entries: dict[bytes, Sequence[bytes | None]]) -> int:
        base = self._keys.base(order.scope.tenant, order.scope.user).encode()
        own = {key.encode() for key in self._own(order)}
        lineage, subject = _lineage(order), order.selector.kind is SelectorKind.SUBJECT
        return sum(
            key in own
            or (
                key.startswith(base)
                and (bool(load_origins(made_from) & lineage) or (subject and self._covers(order.scope, handle or b"")))
            )
            for key, (handle, made_from) in entries.items()
        )

    @contextmanager
    def _translated(self, orders: Sequence[EraseOrder]) -> Iterator[None]:
        """Refuse late orders, and turn the client's errors into ours: their text may name keys."""
        if any(self._context.clock.now() > order.deadline for order in orders):
            raise DeadlinePassed
        try:
            yield
        except (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ReadOnlyError):
            raise StoreUnreachable from None
        except redis.RedisError:
            raise Transient(code=ErrorCode.STORE_REFUSED) from None


def _lineage(order: EraseOrder) -> frozenset[str]:
    return frozenset(origin(target) for target in order.known)


def _text(value: bytes | str) -> str:
    """Give a value of the client as text: its type depends on a setting of the connection."""
    return value if isinstance(value, str) else value.decode()


def _read(client: redis.Redis, keys: Iterable[bytes]) -> list[Sequence[bytes | None]]:
    """Read scope handle and lineage of entries, in pipelines."""
    wanted, told = list(keys), []
    for start in range(0, len(wanted), CHUNK):
        with client.pipeline(transaction=False) as pipe:
            for key in wanted[start : start + CHUNK]:
                pipe.hmget(key, ["scope", "made_from"])
            told += pipe.execute()
    return told


def _options(options: dict[str, Any]) -> Options:
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors(include_input=False)}))
        message = f"adapter {NAME}: option {wrong} is not valid (allowed: {', '.join(Options.model_fields)})"
        raise InvalidRequest(message, field=f"adapters.{NAME}.{wrong}") from None
