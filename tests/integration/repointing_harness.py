"""A fact that two sources told, and both ways of revoking it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

import pytest

from adapters.memory import revoke as revoking
from adapters.memory.engine import writing
from orchestrator import EraseOrder, Revocation, Scope
from tests.integration.keyed_harness import ANNA, Keyed

HOME, AGAIN = "I live in Utrecht.", "I  live in UTRECHT."


def twice(keyed: Keyed, scope: Scope = ANNA, *, first: str = HOME, last: str = AGAIN) -> str:
    """Let two sources tell the same, and give the id of the fact."""
    keyed.put(scope, "home", first, f"{scope.tenant}/told-first")
    return keyed.put(scope, "home", last, f"{scope.tenant}/told-last").id


def by_lists(keyed: Keyed, order: EraseOrder) -> Revocation:
    return keyed.revoke(order)


def by_conditions(keyed: Keyed, order: EraseOrder) -> Revocation:
    """Revoke as a job is revoked that names more than there is room for."""
    with writing(keyed.adapter._engine, [order.scope.tenant]) as connection:
        (answer,) = revoking.revoke(connection, keyed.gate, [order], at=keyed.clock.now(), at_once=0)
    return answer


Revoke: TypeAlias = Callable[[Keyed, EraseOrder], Revocation]
EITHER = pytest.mark.parametrize("revoke", [by_lists, by_conditions])


def current(keyed: Keyed, scope: Scope = ANNA) -> list[tuple[str, int, str, str, float]]:
    return [(f.key, f.version, f.value, f.source, f.expires) for f in keyed.adapter.store.current(scope)]


def repointed(keyed: Keyed, job: UUID) -> int:
    ((count,),) = keyed.rows(f"SELECT repointed FROM source_revocations WHERE job = '{job}'")  # noqa: S608 - an id
    return int(count)
