"""The faults that `expunge demo --break NAME` plants, each behind the back of the code that it is about."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection
from typing import Final

from adapters.demo.world import READER, SCOPES, SECRET, World
from orchestrator import Gate, InvalidRequest, Keyring

MISTYPED: Final = "pasport"


def plant(name: str | None, world: World) -> None:
    """Plant the fault of a check; those that act while the story runs are planted there."""
    fault = _FAULTS.get(name or "")
    if fault is not None:
        fault(world)


def remember_the_mistyped(world: World) -> None:
    """Store something under the mistyped key, so that something is found."""
    world.memory.store.register_source(READER, "trip-planning/turn-12")
    world.memory.store.put(READER, MISTYPED, "a fact that the demo should not find", "trip-planning/turn-12")


def forget_the_attempt(world: World) -> None:
    """Let the killed worker's claim look as if it had never been: a task that kills its worker would come for ever."""
    with contextlib.closing(_ledger(world)) as connection, connection:
        connection.execute("PRAGMA busy_timeout = 30000")
        changed = connection.execute(
            "UPDATE deletion_units SET status = 'pending', attempts = 0, lease_owner = NULL, lease_until_us = NULL, "
            "deadline_us = NULL, next_attempt_at_us = 0 "
            "WHERE adapter = 'cache' AND phase = 'erase' AND status != 'done'"
        )
        if changed.rowcount != 1:
            message = "the killed worker had not one unit of the cache: the fault would show nothing"
            raise InvalidRequest(message, field="break")


def leave_the_bytes(world: World) -> None:
    """Drop a table as a program does whose SQLite overwrites nothing."""
    with contextlib.closing(world.database()) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE of_somebody (text TEXT)")
        connection.execute("INSERT INTO of_somebody VALUES (?)", (SECRET,))
        connection.commit()
        connection.execute("DROP TABLE of_somebody")
        connection.commit()


def search_ledger(world: World, words: Collection[str]) -> tuple[int, int]:
    """Count the values of the control database that hold one of these words, and all of them."""
    hits = total = 0
    with contextlib.closing(_ledger(world)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names out of the schema itself
                total += len(row)
                hits += sum(word in str(value) for value in row for word in words)
    return hits, total


def _ledger(world: World) -> sqlite3.Connection:
    return sqlite3.connect(world.folder / "state" / "orchestrator.db")


def _bring_the_fact_back(world: World) -> None:
    with contextlib.closing(world.database()) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        (place,) = (
            connection.execute("SELECT rowid FROM facts WHERE user_id = 'reader-b' AND active = 1 LIMIT 1").fetchone(),
        )
        connection.execute(
            "INSERT INTO facts SELECT tenant, 'reader-a', project, 'passport-again', version, fact_id || '-again', ?, "
            "source, confirmed, expires, active, state FROM facts WHERE rowid = ?",
            (SECRET, place[0]),
        )


def _bring_the_answer_back(world: World) -> None:
    world.cache.client().hset("cache:refilled", mapping={"answer": SECRET})


def _change_a_neighbour(world: World) -> None:
    with contextlib.closing(world.database()) as connection, connection:
        connection.execute("UPDATE facts SET value = 'changed' WHERE tenant = 'tenant-b' AND key = 'key-05'")


def _drop_a_neighbour(world: World) -> None:
    scope = SCOPES[1]
    fact = world.memory.store.current(scope)[0]
    handles = [key for key, entry in world.entries().items() if fact.id.encode() in b"".join(entry.values())]
    world.cache.client().delete(*handles)


def _drop_the_tombstones(world: World) -> None:
    with contextlib.closing(world.database()) as connection, connection:
        connection.execute("DELETE FROM source_tombstones")


def _block_the_subject(world: World) -> None:
    keys = (world.folder / "state" / "keys" / "tombstone.json").read_text()
    tombstone = Gate(Keyring.parse(keys)).for_subject(READER, 10**9)
    with contextlib.closing(world.database()) as connection, connection:
        connection.execute(
            "INSERT INTO source_tombstones (tenant, key_id, mac, kind, job, cut_off) VALUES (?, ?, ?, ?, 'demo', ?)",
            (READER.tenant, tombstone.key_id, tombstone.mac, tombstone.kind.value, tombstone.cut_off),
        )


def _lose_a_receipt(world: World) -> None:
    with contextlib.closing(_ledger(world)) as connection, connection:
        connection.execute("DROP TRIGGER receipts_no_delete")
        connection.execute(
            "DELETE FROM deletion_receipts WHERE id = (SELECT id FROM deletion_receipts WHERE phase = 'verify' LIMIT 1)"
        )


def _name_the_reader(world: World) -> None:
    with contextlib.closing(_ledger(world)) as connection, connection:
        connection.execute("UPDATE deletion_jobs SET reference = 'case-of-reader-a' WHERE selector_kind = 'key'")


_FAULTS: Final[dict[str, Callable[[World], None]]] = {
    "memory_gives_nothing": _bring_the_fact_back,
    "cache_gives_nothing": _bring_the_answer_back,
    "neighbour_facts_are_identical": _change_a_neighbour,
    "neighbour_answers_are_identical": _drop_a_neighbour,
    "transcript_is_refused": _drop_the_tombstones,
    "fresh_statement_is_admitted": _block_the_subject,
    "one_receipt_per_unit": _lose_a_receipt,
    "ledger_names_nobody": _name_the_reader,
}
