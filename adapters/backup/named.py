"""Which records of a copy an order names: by its selector, and by what the source has revoked for its job.

Principles: the tenant stands in every statement; what a hold covers is left out; a chain of
memories is one item and goes as a whole. What was accepted after the job's cut-off, which a
copy that was taken later knows, is not named.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.backup import drafts, keyed
from adapters.backup.looking import tables_of
from orchestrator import EraseOrder, SelectorKind, Target

Asked: TypeAlias = Mapping[str, str | int | None]
"""Parameters of a statement: who asks for what, and up to where it reaches."""
FACT: Final = "fact"
MEMORY: Final = "memory"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_NOT_AFTER: Final = "coalesce(s.position <= coalesce(:cut_off, r.cut_off), TRUE)"
"""A record whose source is not known, or of a job whose reach is not, may be meant."""
_FACTS: Final = f"""
    SELECT f.fact_id, f.version FROM facts AS f
    LEFT JOIN accepted_sources AS s ON s.tenant = f.tenant AND s.source_id = f.source
    LEFT JOIN source_revocations AS r ON r.job = :job
    WHERE f.tenant = :tenant AND f.user_id = :user AND {_NOT_AFTER} AND """  # noqa: S608 - a text of ours
_KNOWN_FACTS: Final = """
    SELECT f.fact_id, f.version FROM json_each(:known) AS k CROSS JOIN facts AS f
    WHERE f.tenant = :tenant AND f.fact_id = json_extract(k.value, '$[0]') AND f.version = json_extract(k.value, '$[1]')
"""
_IN_PROJECT: Final = "(:project IS NULL OR f.project = :project)"
_OF_SOURCE: Final = """({0}.source = :value OR EXISTS (SELECT 1 FROM source_ancestry AS a
    WHERE a.tenant = :tenant AND a.source_id = {0}.source AND a.ancestor_id = :value))"""
_NAMED_FACTS: Final[Mapping[SelectorKind, str]] = {
    SelectorKind.KEY: f"{_FACTS} {_IN_PROJECT} AND f.key = :value",
    SelectorKind.MEMORY: f"{_FACTS} {_IN_PROJECT} AND f.fact_id = :value",
    SelectorKind.SUBJECT: f"{_FACTS} {_IN_PROJECT}",
    SelectorKind.SOURCE: f"{_FACTS} {_OF_SOURCE.format('f')}",
}
_MEMORIES: Final = f"""
    SELECT m.id FROM memories AS m JOIN memory_tenants AS t ON t.memory_id = m.id
    LEFT JOIN accepted_sources AS s ON s.tenant = t.tenant AND s.source_id = m.source
    LEFT JOIN source_revocations AS r ON r.job = :job
    WHERE t.tenant = :tenant AND m.user_id = :user AND {_NOT_AFTER} AND """  # noqa: S608 - a text of ours
_OF_TASK: Final = "(:project IS NULL OR m.task_id = :project)"
_NAMED_MEMORIES: Final[Mapping[SelectorKind, str]] = {
    SelectorKind.MEMORY: f"{_MEMORIES} {_OF_TASK} AND m.id = :number",
    SelectorKind.SUBJECT: f"{_MEMORIES} {_OF_TASK}",
    SelectorKind.SOURCE: f"{_MEMORIES} {_OF_SOURCE.format('m')}",
}
# From some versions back to the first of their chains, and on to all: each is visited once.
_CHAINS: Final = """
    WITH RECURSIVE reached(id) AS (
        SELECT k.value FROM json_each(:some) AS k
        UNION
        SELECT m.id FROM reached JOIN memories AS m
        ON m.supersedes = reached.id OR m.id = (SELECT o.supersedes FROM memories AS o WHERE o.id = reached.id)
    )
    SELECT m.id, m.supersedes FROM reached JOIN memories AS m ON m.id = reached.id
    JOIN memory_tenants AS t ON t.memory_id = m.id AND t.tenant = :tenant ORDER BY m.id
"""


@dataclass(frozen=True, slots=True)
class Records:
    """What an order names in one copy.

    Facts by id and version, memories by chain and id, events by handle and sequence, candidates and drafts by handle.
    """

    facts: tuple[tuple[str, int], ...] = ()
    memories: tuple[tuple[int, int], ...] = ()
    events: tuple[keyed.Handle, ...] = ()
    candidates: tuple[keyed.Handle, ...] = ()
    drafts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.facts or self.memories or self.events or self.candidates or self.drafts)

    @property
    def witness(self) -> str:
        """Give one of them, always the same, as `kind:id@version`."""
        if self.facts:
            item, version = self.facts[0]
            return f"{FACT}:{item}@{version}"
        if self.memories:
            chain, memory = self.memories[0]
            return f"{MEMORY}:{chain}@{memory}"
        for kind, records in ((keyed.EVENT, self.events), (keyed.CANDIDATE, self.candidates)):
            for handle, version in records[:1]:
                return f"{kind}:{handle}@{version}"
        return f"{drafts.KIND}:{self.drafts[0]}@0"


def named(connection: sqlite3.Connection, order: EraseOrder, known: Collection[Target], cut_off: int | None) -> Records:
    """Give the records of a copy that an order names; `known` are those of the source.

    `cut_off` is the last position that the job reaches, as the source has it; without one, that in the copy counts.
    """
    asked = _asked(order, cut_off)
    facts = {fact for fact in _facts(connection, order, known, asked) if fact[0] not in order.held}
    memories = _memories(connection, order, known, asked) if "memory_tenants" in tables_of(connection) else ()
    going = {(FACT, item, version) for item, version in facts}
    going |= {(MEMORY, str(chain), memory) for chain, memory in memories}
    events, candidates = (keyed.named(connection, order, known, kind, asked) for kind in (keyed.EVENT, keyed.CANDIDATE))
    going |= {(keyed.EVENT, handle, sequence) for handle, sequence in events}
    origins = {FACT, MEMORY, keyed.EVENT}
    going |= {(t.kind, t.id, t.version) for t in known if t.kind in origins and t.id not in order.held}
    return Records(
        tuple(sorted(facts)), tuple(sorted(memories)), events, candidates, drafts.named(connection, order, going, asked)
    )


def holds(connection: sqlite3.Connection, tenant: str, record: str) -> bool:
    """Tell whether a copy holds a record of a tenant, given as `kind:id@version`, whoever owns it."""
    kind, _, rest = record.partition(":")
    item, _, version = rest.rpartition("@")
    if not _NUMBER.fullmatch(version):
        return False
    asked = {"tenant": tenant, "known": json.dumps([[item, int(version)]]), "some": f"[{int(version)}]"}
    if kind == drafts.KIND:
        return drafts.holds(connection, tenant, item)
    if kind in {keyed.EVENT, keyed.CANDIDATE}:
        return keyed.holds(connection, tenant, kind, (item, int(version)))
    if kind == FACT:
        return connection.execute(_KNOWN_FACTS, asked).fetchone() is not None
    chains = kind == MEMORY and "memory_tenants" in tables_of(connection)
    return chains and any(memory == int(version) for memory, _ in connection.execute(_CHAINS, asked))


def _facts(
    connection: sqlite3.Connection, order: EraseOrder, known: Collection[Target], asked: Asked
) -> Iterator[tuple[str, int]]:
    statement = _NAMED_FACTS.get(order.selector.kind)
    if statement is not None:
        yield from connection.execute(statement, asked)
    handles = sorted({(target.id, target.version) for target in known if target.kind == FACT})
    if handles:
        given = {"tenant": order.scope.tenant, "known": json.dumps(handles, ensure_ascii=False)}
        yield from connection.execute(_KNOWN_FACTS, given)


def _memories(
    connection: sqlite3.Connection, order: EraseOrder, known: Collection[Target], asked: Asked
) -> set[tuple[int, int]]:
    some = {target.version for target in known if target.kind == MEMORY}
    statement = _NAMED_MEMORIES.get(order.selector.kind)
    number = order.selector.value or ""
    if order.selector.kind is SelectorKind.MEMORY:
        # Ids of facts are texts of another form.
        statement = statement if _NUMBER.fullmatch(number) else None
        asked = {**asked, "number": int(number) if statement else 0}
    if statement is not None:
        some.update(memory for (memory,) in connection.execute(statement, asked))
    if not some:
        return set()
    given = {"tenant": order.scope.tenant, "some": json.dumps(sorted(some))}
    return _by_chain(connection.execute(_CHAINS, given), order.held)


def _by_chain(versions: sqlite3.Cursor, held: Collection[str]) -> set[tuple[int, int]]:
    """Give chain and id of each version; a correction has the higher id, so its chain is told before it comes."""
    chains: dict[int, int] = {}
    for memory, supersedes in versions:
        chains[memory] = chains.get(supersedes, memory)
    return {(chain, memory) for memory, chain in chains.items() if str(chain) not in held}


def _asked(order: EraseOrder, cut_off: int | None) -> Asked:
    scope = order.scope
    return {
        "job": str(order.job),
        "tenant": scope.tenant,
        "user": scope.user,
        "project": scope.project,
        "value": order.selector.value,
        "cut_off": cut_off,
    }
