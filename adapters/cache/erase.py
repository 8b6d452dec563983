"""Erasing: fences first, then exactly the keys of the orders, each only if its own subject may hold it.

Principles: nothing is removed before the scope refuses older fills. A key is removed because
an order names it, never because it matches. One of another user of the tenant is not touched,
and if it is there it counts as left over; one of another tenant is absent to this order. What
is counted is what the server gave back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import redis

from adapters.cache import lua
from adapters.cache.entry import AT_ONCE, Entry, read
from adapters.cache.find import KIND
from adapters.cache.keys import Keys, SubjectKeys
from orchestrator import Erased, EraseOrder, SelectorKind


def erase(client: redis.Redis, keys: Keys, orders: Sequence[EraseOrder], in_time: Callable[[], None]) -> list[Erased]:
    """Raise the fences of all orders, then remove their targets; of two that name one key the first erased it."""
    subjects = [keys.subject(order.scope) for order in orders]
    wanted = [
        list(dict.fromkeys(t.id for t in o.targets if t.kind == KIND and t.id.startswith(s.entries)))
        for o, s in zip(orders, subjects, strict=True)
    ]
    _raise(client, keys, orders, wanted, in_time)
    gone = _remove(client, subjects, wanted, in_time)
    left = _left_over(client, subjects, orders, in_time)
    return [
        Erased(erased=count, already_absent=len(order.targets) - count - others)
        for order, count, others in zip(orders, gone, left, strict=True)
    ]


def _raise(
    client: redis.Redis,
    keys: Keys,
    orders: Sequence[EraseOrder],
    wanted: Sequence[list[str]],
    in_time: Callable[[], None],
) -> None:
    raising = [(o, o.revision, w) for o, w in zip(orders, wanted, strict=True) if o.revision is not None]
    with client.pipeline(transaction=False) as pipeline:
        for order, _, _ in raising:
            pipeline.smembers(keys.subject(order.scope).scopes)
        filled = pipeline.execute()
    # A source reaches into all of the user's projects; the entries it led to say into which, and where nothing was
    # cached yet, the fence of the user in general stands.
    by_source = [w if order.selector.kind is SelectorKind.SOURCE else [] for order, _, w in raising]
    entries = read(client, (key for of_order in by_source for key in of_order), in_time)
    script = client.register_script(lua.RAISE)
    in_time()
    with client.pipeline(transaction=False) as pipeline:
        for (order, revision, _), handles, reached in zip(raising, filled, by_source, strict=True):
            scopes = {keys.scope(order.scope), *_scopes_of(entries, reached)}
            if order.selector.kind is SelectorKind.SOURCE:
                scopes.add(keys.scope(replace(order.scope, project=None)))
            if order.scope.project is None:
                scopes |= {handle.decode() for handle in handles}
            subject = keys.subject(order.scope)
            script(keys=[subject.fence(scope) for scope in sorted(scopes)], args=[revision], client=pipeline)
        pipeline.execute()


def _scopes_of(entries: dict[str, Entry], keys: Sequence[str]) -> set[str]:
    return {entry.scope for key in keys if (entry := entries.get(key)) is not None and entry.scope is not None}


def _remove(
    client: redis.Redis,
    subjects: Sequence[SubjectKeys],
    wanted: Sequence[list[str]],
    in_time: Callable[[], None],
) -> list[int]:
    """Give how many keys of each order were there."""
    calls = [
        (n, subject, of_order[start : start + AT_ONCE])
        for n, (subject, of_order) in enumerate(zip(subjects, wanted, strict=True))
        for start in range(0, len(of_order), AT_ONCE)
    ]
    gone = [0] * len(subjects)
    script = client.register_script(lua.REMOVE)
    for batch in _round_trips(calls):
        in_time()
        with client.pipeline(transaction=False) as pipeline:
            for _, subject, chunk in batch:
                script(keys=[subject.members, *chunk], client=pipeline)
            answers = pipeline.execute()
        for (n, _, _), answer in zip(batch, answers, strict=True):
            gone[n] += sum(answer)
    return gone


def _left_over(
    client: redis.Redis, subjects: Sequence[SubjectKeys], orders: Sequence[EraseOrder], in_time: Callable[[], None]
) -> list[int]:
    """Give how many keys of each order are there, in its tenant, and not its to remove."""
    asked = [
        (n, t.id)
        for n, (order, subject) in enumerate(zip(orders, subjects, strict=True))
        for t in order.targets
        if t.kind == KIND and t.id.startswith(subject.tenant) and not t.id.startswith(subject.entries)
    ]
    left = [0] * len(orders)
    for start in range(0, len(asked), AT_ONCE):
        chunk = asked[start : start + AT_ONCE]
        in_time()
        with client.pipeline(transaction=False) as pipeline:
            for _, key in chunk:
                pipeline.exists(key)
            answers = pipeline.execute()
        for (n, _), there in zip(chunk, answers, strict=True):
            left[n] += there
    return left


def _round_trips(
    calls: Sequence[tuple[int, SubjectKeys, list[str]]],
) -> list[list[tuple[int, SubjectKeys, list[str]]]]:
    """Put calls together up to the number of keys of one round trip; a call is never divided."""
    trips: list[list[tuple[int, SubjectKeys, list[str]]]] = []
    size = AT_ONCE
    for call in calls:
        if size + len(call[2]) > AT_ONCE:
            trips.append([])
            size = 0
        trips[-1].append(call)
        size += len(call[2])
    return trips
