"""Mutants of the vector index: what was said lies in its vectors, and one of them may stay where nobody asks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from orchestrator import Erased, Scope, Target
from orchestrator.testing import PLANTED
from tests.contract.mutants_any import late_writers_unseen
from tests.contract.mutants_rows import Rows, instead_of_erasing
from tests.contract.mutation import Orders, opened, override
from tests.contract.vectors import VectorUnderTest

POINTS: Final = Rows("vector_points", "id", ("user_id", "id", "origin", "source"))


def vector_not_served(store: VectorUnderTest) -> None:
    """Take away what leads from a point to its record: no search gives it any more, and it is still there."""
    instead_of_erasing(
        store,
        """UPDATE vector_points SET kind = NULL, origin = NULL, version = NULL
        WHERE tenant = ? AND id = ? AND origin IS NOT NULL""",
    )


def vector_without_guard(store: VectorUnderTest) -> None:
    """Let everybody write, and look only at what was found: what an indexer writes late comes back unseen."""

    def active(scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        del scope
        return dict.fromkeys(records, PLANTED)

    vars(store.records)["active"] = active
    late_writers_unseen(store)


def vector_as_its_sketch(store: VectorUnderTest) -> None:
    """Keep the vector itself where a sketch of it is to be kept, under a name that no look asks for."""
    erase = store.adapter.erase
    keep = """INSERT OR REPLACE INTO vector_probes
        SELECT tenant, '~' || id, vector FROM vector_points WHERE tenant = ? AND id = ?"""

    def mutant(orders: Orders) -> Sequence[Erased]:
        with opened(store.file) as connection:
            connection.executemany(keep, [(o.scope.tenant, target.id) for o in orders for target in o.targets])
        return erase(orders)

    override(store.adapter, erase=mutant)
