"""An entry as it is read back, and its lineage: the `kind:id@version` of everything it was made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import redis

from orchestrator import Target

FIELDS: Final = ("scope", "made_from", "revision")
"""What is read of an entry: never the answer."""
AT_ONCE: Final = 500
"""Keys in one round trip."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an entry says of itself. `scope` and `revision` are None where it does not say."""

    scope: str | None
    made_from: tuple[str, ...]
    revision: int | None

    def named_by(self, lineage: Lineage) -> str | None:
        """Give the first origin that is part of a lineage, or None."""
        return next((origin for origin in self.made_from if lineage.holds(origin)), None)


class Lineage:
    """The names of targets, to hold origins against. A version of 0 stands for every version."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._exact: set[str] = set()
        self._every_version: set[str] = set()
        for target in targets:
            name = f"{target.kind}:{target.id}"
            self._exact |= {f"{name}@{target.version}", f"{name}@0", name}
            if target.version == 0:
                self._every_version.add(name)

    def holds(self, origin: str) -> bool:
        """Tell whether an origin names one of the targets; one without a version names all of them."""
        name, _, version = origin.rpartition("@")
        return origin in self._exact or (version.isdecimal() and name in self._every_version)


def origins(targets: Iterable[Target]) -> str:
    """Write a lineage down."""
    return json.dumps([f"{t.kind}:{t.id}@{t.version}" for t in targets], ensure_ascii=False, separators=(",", ":"))


def records_of(written: bytes | str | None) -> list[Target]:
    """Read a lineage back; a name that names no version names no record that is handed out."""
    found = []
    for origin in _list(written):
        name, _, version = origin.rpartition("@")
        kind, _, handle = name.partition(":")
        found.append(Target(kind=kind, id=handle, version=int(version) if version.isdecimal() else 0))
    return found


def read(client: redis.Redis, keys: Iterable[str], in_time: Callable[[], None]) -> dict[str, Entry]:
    """Read the entries that exist under these keys.

    Something that is not a hash of ours is an entry that names no origin, never nothing.
    """
    wanted = list(dict.fromkeys(keys))
    found: dict[str, Entry] = {}
    for start in range(0, len(wanted), AT_ONCE):
        in_time()
        chunk = wanted[start : start + AT_ONCE]
        silent = []
        for key, values in zip(chunk, _fields(client, chunk), strict=True):
            if any(value is not None for value in values):
                found[key] = _parse(*values)
            else:
                silent.append(key)
        for key in _existing(client, silent):
            found[key] = Entry(scope=None, made_from=(), revision=None)
    return found


def _fields(client: redis.Redis, keys: Sequence[str]) -> Iterator[Sequence[bytes | None]]:
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.hmget(key, FIELDS)
        answers = pipeline.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, redis.ResponseError) and "WRONGTYPE" in str(answer):
            yield (None,) * len(FIELDS)
        elif isinstance(answer, Exception):
            raise answer
        else:
            yield answer


def _existing(client: redis.Redis, keys: Sequence[str]) -> Iterator[str]:
    if not keys:
        return
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.exists(key)
        answers = pipeline.execute()
    yield from (key for key, there in zip(keys, answers, strict=True) if there)


def _parse(scope: bytes | None, made_from: bytes | None, revision: bytes | None) -> Entry:
    return Entry(
        scope=scope.decode(errors="replace") if scope is not None else None,
        made_from=_list(made_from),
        revision=int(revision) if revision is not None and revision.isdigit() else None,
    )


def _list(text: bytes | str | None) -> tuple[str, ...]:
    try:
        found = json.loads(text or b"[]")
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
