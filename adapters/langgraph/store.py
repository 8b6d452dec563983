"""LangGraph's `BaseStore` over the memory store: a graph's items are facts of one scope.

Principles: whose items these are was decided before a graph ran, and no namespace says otherwise;
everything is checked before anything is written; each write passes the gate, in the memory store's
own transaction.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
)

from adapters.langgraph.items import all_items, items_of
from adapters.langgraph.names import key_of
from adapters.langgraph.namespaces import check_list, list_namespaces
from adapters.langgraph.search import check_search, search
from adapters.langgraph.values import text_of
from adapters.memory import MemoryStore
from adapters.memory import facts as storing
from adapters.memory.engine import reading
from orchestrator import InvalidRequest, Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    """What becomes of one key: a text with the instant at which it expires, or no text where it is forgotten."""

    key: str
    text: str | None
    expires: float


class ScopedStore(BaseStore):
    """The items of one user in one project, bound by the application's session; `graph.copy` takes it in.

    `source` names the accepted source of the turn that is being worked on, an id that the application
    has registered before the graph runs. A context variable does, also across threads and tasks:

        TURN: ContextVar[str] = ContextVar("turn")

        memory.store.register_source(scope, "chat/turn-7")
        TURN.set("chat/turn-7")
        graph.copy({"store": ScopedStore(memory.store, scope, TURN.get)}).invoke(...)

    An item is a fact: `key_of` gives its key and `text_of` its text, of at most 2,000 characters. A put
    raises `GateRefused` where the source is not accepted, or where the key, the text or the source
    was forgotten. A text that was forgotten comes in again only when the user states it anew, by `put`
    of the memory store with `user_statement`.

    `delete` revokes: every version of the key is blanked here, and nothing else. Copies elsewhere stay,
    and the same turn may put the item again. What reaches the copies, and keeps an old conversation from
    telling it again, is a deletion job: file a request.

    `ttl` counts in minutes from the put, and a read does not lengthen it: `refresh_ttl` has no effect.
    What has expired is not handed out, and a job of the clock takes it away. `updated_at` is when
    the source of an item was accepted, `created_at` when the first of its sources was. There is no index
    of meanings: a query ranks by words, and `index` has no effect.

    Of one batch, reads see what was there before it. Of several puts of one key the last one counts. Each is
    a transaction: where the gate refuses one, those before it stay, and the batch may be sent again.
    """

    supports_ttl = True
    ttl_config = TTLConfig(refresh_on_read=False, omit_expired=True)

    def __init__(self, memory: MemoryStore, scope: Scope, source: Callable[[], str]) -> None:
        """Bind a memory store to a scope with a project: forgetting without one would reach into all of them."""
        if scope.project is None:
            message = "scope must name a project: take one for what holds for the user in general"
            raise InvalidRequest(message, field="project")
        self._memory, self._scope, self._source = memory, scope, source
        # Facts are read with what no method of the memory store tells: the times of their sources.
        self._engine, self._clock = memory._engine, memory._clock  # noqa: SLF001 - a part of the same library

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the reads in one transaction, then the writes, and give one result for each operation.

        Raises `GateRefused`, `RuleRefused` for what a legal hold covers, `InvalidRequest`, and `Transient` where the
        database does not answer. Each write is a transaction: those before the one that is refused are done.
        """
        asked = list(ops)
        now = self._clock.now().timestamp()
        changes = _changes(asked, now)
        results = self._read(asked, now)
        self._write(changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a thread, with the context variables of the caller."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, asked: Sequence[Op], now: float) -> list[Result]:
        keys = {key_of(op.namespace, op.key) for op in asked if isinstance(op, GetOp)}
        whole = any(isinstance(op, (SearchOp, ListNamespacesOp)) for op in asked)
        items: list[Item] = []
        if whole or keys:
            with reading(self._engine, [self._scope.tenant]) as connection:
                items = (
                    all_items(connection, self._scope, now) if whole else items_of(connection, self._scope, keys, now)
                )
        return [_answer(op, items) for op in asked]

    def _write(self, changes: Sequence[_Change]) -> None:
        told = [change for change in changes if change.text is not None]
        source = self._named_source() if told else ""
        for change in told:
            storing.check(change.key, change.text or "", source, change.expires)
        for change in changes:
            if change.text is None:
                self._memory.forget(self._scope, change.key)
            else:
                self._memory.put(self._scope, change.key, change.text, source, change.expires)

    def _named_source(self) -> str:
        try:
            return self._source()
        except LookupError:
            message = "source names nothing: register the message of this turn, and set the variable to its id"
            raise InvalidRequest(message, field="source") from None


def _changes(asked: Sequence[Op], now: float) -> list[_Change]:
    """Check every operation; give what the puts come to, the last one of each key in the place of the first."""
    changes: dict[str, _Change] = {}
    for op in asked:
        match op:
            case GetOp():
                pass  # its names are checked as it is read
            case SearchOp():
                check_search(op)
            case ListNamespacesOp():
                check_list(op)
            case PutOp():
                key = key_of(op.namespace, op.key)
                text = None if op.value is None else text_of(op.value)
                changes[key] = _Change(key=key, text=text, expires=_expires(op.ttl, now))
            case _:
                message = "an operation must be a GetOp, SearchOp, ListNamespacesOp or PutOp"
                raise InvalidRequest(message, field="ops")
    return list(changes.values())


def _expires(ttl: float | None, now: float) -> float:
    if ttl is None:
        return math.inf
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl < math.inf:
        message = "ttl must be a number of minutes above 0"
        raise InvalidRequest(message, field="ttl")
    return now + ttl * 60


def _answer(op: Op, items: Sequence[Item]) -> Result:
    match op:
        case GetOp():
            return next((i for i in items if (i.namespace, i.key) == (op.namespace, op.key)), None)
        case SearchOp():
            return search(items, op)
        case ListNamespacesOp():
            return list_namespaces({item.namespace for item in items}, op)
        case _:
            return None
