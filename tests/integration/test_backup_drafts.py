"""Drafts lie in the same database as their origins: a copy of it holds both, and they go together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.backup import Copy
from adapters.drafts.tables import draft_jobs, draft_used, drafts, metadata
from orchestrator import Erased, Scope, Seen, Selector, SelectorKind, Target
from tests.integration.backup_harness import ANNA, BERTA, ELSEWHERE, RENEWED, SEAT, SUBJECT, Stage, backups, sql

__all__ = ["backups"]

BY_KEY = Selector(kind=SelectorKind.KEY, value="seat")


def write(backups: Stage, scope: Scope, handle: str, *origins: Target, position: int = 1) -> None:
    """Write a draft as its runtime does, with the job that it is of."""
    place = {"tenant": scope.tenant, "user_id": scope.user, "project": scope.project, "position": position}
    job = {**place, "handle": f"job-{handle}", "name": f"name-{handle}", "state": "open", "memory_rev": 1}
    draft = {**place, "handle": handle, "job": f"job-{handle}", "step": "write", "text": f"{RENEWED} {handle}"}
    used = [
        {"tenant": scope.tenant, "handle": handle, "kind": o.kind, "id": o.id, "version": o.version} for o in origins
    ]
    with backups.memory.store._engine.begin() as connection:
        metadata.create_all(connection)
        connection.execute(sa.insert(draft_jobs).values(**job, memory_expires=None, lease_owner="w", lease_until_us=1))
        connection.execute(sa.insert(drafts).values(**draft))
        for row in used:
            connection.execute(sa.insert(draft_used).values(**row))


def handles(backups: Stage, copy: Copy) -> list[tuple[Any, ...]]:
    return backups.rows(copy, "SELECT tenant, handle FROM drafts ORDER BY 1, 2")


@pytest.mark.case(125)
def test_draft_goes_from_a_copy_with_the_record_that_it_was_made_from(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    chain = backups.remember(ANNA, SEAT, "turn-7")
    memory = Target(kind="memory", id=str(chain), version=chain)
    write(backups, ANNA, "from-the-fact", seat)
    write(backups, BERTA, "of-somebody-else", replace(seat, version=0))
    write(backups, ANNA, "from-the-memory", memory)
    write(backups, ELSEWHERE, "from-the-fact", seat)
    write(backups, ELSEWHERE, "from-the-memory", seat)
    copy = backups.take()
    order = backups.revoked(BY_KEY)
    found = backups.found(order)
    assert backups.look(replace(found, known=order.known)).remaining == 1
    assert backups.erase(found) == Erased(erased=1)
    others = [("other", "from-the-fact"), ("other", "from-the-memory")]
    assert handles(backups, copy) == [("acme", "from-the-memory"), *others], "the same ids mean others elsewhere"
    states = dict(backups.rows(copy, "SELECT tenant || handle, state || coalesce(lease_owner, '') FROM draft_jobs"))
    assert states["acmejob-from-the-fact"] == "failed"
    assert states["otherjob-from-the-fact"] == states["acmejob-from-the-memory"] == "openw"
    assert backups.rows(copy, "SELECT tenant FROM draft_used ORDER BY 1") == [("acme",), ("other",), ("other",)]
    assert backups.look(replace(found, known=order.known)) == Seen()


def test_copy_taken_after_the_records_went_and_before_the_draft_did_is_seen_and_rewritten(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    write(backups, ANNA, "late", seat)
    order = backups.revoked(BY_KEY)
    backups.memory.erase([replace(order, targets=order.known)])
    copy = backups.take()
    assert backups.rows(copy, "SELECT key FROM facts WHERE key = 'seat'") == []
    found = backups.found(order)
    assert [target.derived_of for target in found.targets] == ["draft:late@0"]
    assert backups.look(replace(found, known=order.known)).remaining == 1
    assert backups.look(order).remaining == 1, "it was made from what the source has named"
    assert backups.look(found).remaining == 1, "the draft that find has named is looked for by its own handle, too"
    assert backups.erase(replace(found, job=backups.order().job)) == Erased(), "nobody says that it was absent"
    assert backups.erase(found) == Erased(erased=1)
    assert handles(backups, copy) == []
    assert backups.look(replace(found, known=order.known)) == Seen()
    assert RENEWED.encode() not in backups.path(copy).read_bytes()


def test_draft_goes_with_a_record_that_the_source_holds_no_more(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    chain = backups.remember(ANNA, SEAT, "turn-7")
    write(backups, ANNA, "from-the-fact", seat)
    write(backups, ANNA, "from-the-memory", Target(kind="memory", id=str(chain), version=chain))
    copy = backups.take()
    by_memory = Selector(kind=SelectorKind.MEMORY, value=str(chain))
    assert backups.erase(backups.found(backups.order(by_memory))).erased == 1
    assert handles(backups, copy) == [("acme", "from-the-fact")]
    assert backups.erase(backups.found(backups.order(BY_KEY))).erased == 1
    assert handles(backups, copy) == []


def test_draft_that_names_no_origin_is_its_owners(backups: Stage) -> None:
    write(backups, ANNA, "old")
    order = backups.revoked()
    backups.memory.erase([replace(order, targets=order.known)])
    backups.take()
    assert backups.look(replace(order, known=())).remaining == 1
    assert backups.look(replace(order, known=(), scope=replace(ANNA, project="work"))) == Seen()
    assert backups.look(replace(order, known=(), scope=BERTA)).remaining == 1, "Berta has told something herself"
    assert backups.erase(backups.found(order)).erased == 1
    assert backups.look(replace(order, known=())) == Seen()


def test_person_goes_with_all_drafts_and_what_was_begun_later_stays(backups: Stage) -> None:
    write(backups, ANNA, "old", position=1)
    write(backups, replace(ANNA, project="work"), "at-work", position=1)
    write(backups, BERTA, "of-berta", position=1)
    order = backups.revoked()
    backups.memory.store.register_source(ANNA, "turn-9")
    write(backups, ANNA, "new", position=99)
    copy = backups.take()
    found = backups.found(order)
    assert backups.erase(found) == Erased(erased=1)
    assert handles(backups, copy) == [("acme", "at-work"), ("acme", "new"), ("acme", "of-berta")]
    assert backups.look(replace(found, known=order.known)) == Seen()
    with sql(backups.folder / "memory.db") as live:  # as it is where the source was put back and has revoked anew
        live.execute("UPDATE source_revocations SET cut_off = 99 WHERE job = ?", (str(order.job),))
    assert backups.look(replace(found, known=())).remaining == 1
    assert backups.erase(backups.found(order)) == Erased(erased=1)
    assert handles(backups, copy) == [("acme", "at-work"), ("acme", "of-berta")]


def test_draft_that_was_made_from_what_a_hold_covers_stays(backups: Stage) -> None:
    seat = backups.tell(ANNA, "seat", SEAT, "turn-7")
    write(backups, ANNA, "from-the-seat", seat)
    write(backups, ANNA, "from-nothing")
    copy, held = backups.take(), frozenset({seat.id})
    order = replace(backups.revoked(SUBJECT, ANNA, held=held), held=held)
    found = backups.found(order)
    assert backups.erase(found) == Erased(erased=1)
    assert handles(backups, copy) == [("acme", "from-the-seat")]
    assert backups.erase(replace(found, held=frozenset())) == Erased(erased=1)
    assert handles(backups, copy) == []


def test_texts_of_drafts_are_among_the_live_values(backups: Stage) -> None:
    write(backups, ANNA, "old")
    backups.take()
    assert f"{RENEWED} old".encode() in list(backups.backup.live_values())
