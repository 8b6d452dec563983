"""Mutants of the drafts: a text lies between its job, which leads to it, and what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestrator import Erased, EraseOrder, Target
from tests.contract.drafts import DraftsUnderTest
from tests.contract.mutants_rows import Rows, instead_of_erasing
from tests.contract.mutation import Orders, opened, override

DRAFT_ROWS: Final = Rows("drafts", "handle", ("user_id", "handle"))


def drafts_not_served(store: DraftsUnderTest) -> None:
    """Take the job away by which its runner would come to the draft, and leave the draft."""
    instead_of_erasing(
        store,
        """DELETE FROM draft_jobs
        WHERE (tenant, handle) IN (SELECT tenant, job FROM drafts WHERE tenant = ? AND handle = ?)""",
    )


def drafts_of_others_are_absent(store: DraftsUnderTest) -> None:
    """Ask for the owner as well, and count what is there and belongs to another user as absent."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        own = [_own(store, order) for order in orders]
        answers = erase([replace(order, targets=targets) for order, targets in zip(orders, own, strict=True)])
        return [replace(a, already_absent=len(o.targets) - a.erased) for o, a in zip(orders, answers, strict=True)]

    override(store.adapter, erase=mutant)


def drafts_keep_their_origins(store: DraftsUnderTest) -> None:
    """Keep what the drafts were made from: rows of a draft that is there no more."""
    erase = store.adapter.erase
    keep = "INSERT OR IGNORE INTO draft_used VALUES (?, ?, ?, ?, ?)"

    def mutant(orders: Orders) -> Sequence[Erased]:
        handles = [(o.scope.tenant, target.id) for o in orders for target in o.targets]
        with opened(store.file) as connection:
            read = "SELECT * FROM draft_used WHERE tenant = ? AND handle = ?"
            origins = [row for handle in handles for row in connection.execute(read, handle)]
        answers = erase(orders)
        with opened(store.file) as connection:
            connection.executemany(keep, origins)
        return answers

    override(store.adapter, erase=mutant)


def drafts_text_in_the_job(store: DraftsUnderTest) -> None:
    """Say in the job, which stays, what was erased of it."""
    erase = store.adapter.erase
    tell = """UPDATE draft_jobs SET name = name || (SELECT text FROM drafts WHERE tenant = ?1 AND handle = ?2)
        WHERE tenant = ?1 AND handle = (SELECT job FROM drafts WHERE tenant = ?1 AND handle = ?2)"""

    def mutant(orders: Orders) -> Sequence[Erased]:
        with opened(store.file) as connection:
            connection.executemany(tell, [(o.scope.tenant, target.id) for o in orders for target in o.targets])
        return erase(orders)

    override(store.adapter, erase=mutant)


def _own(store: DraftsUnderTest, order: EraseOrder) -> tuple[Target, ...]:
    of_user = "SELECT handle FROM drafts WHERE tenant = ? AND user_id = ?"
    with opened(store.file) as connection:
        handles = {handle for (handle,) in connection.execute(of_user, (order.scope.tenant, order.scope.user))}
    return tuple(target for target in order.targets if target.id in handles)
