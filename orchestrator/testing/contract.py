"""The laws of the adapter contract as a suite: one class for every adapter, ours and a third party's.

Principles: after every erase the subject is gone *and* the neighbours are byte-identical,
read by the store's own raw road. A failure names its law and never what was stored.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.testing.laws_of_bytes import LawsOfBytes
from orchestrator.testing.laws_of_closure import LawsOfClosure
from orchestrator.testing.laws_of_doubt import LawsOfDoubt
from orchestrator.testing.laws_of_erasing import LawsOfErasing
from orchestrator.testing.laws_of_holds import LawsOfHolds
from orchestrator.testing.laws_of_limits import LawsOfLimits
from orchestrator.testing.store import StoreUnderTest


class AdapterContract(LawsOfErasing, LawsOfHolds, LawsOfLimits, LawsOfDoubt, LawsOfClosure, LawsOfBytes):
    """The laws that every adapter keeps: inherit and give a pytest fixture `store`.

    `sizes` are the numbers of targets of law 5; a slow store may take fewer.
    """

    @classmethod
    def laws(cls) -> dict[str, Callable[[AdapterContract, StoreUnderTest], None]]:
        """Name every law of the suite and how to run it."""
        return {name: getattr(cls, name) for name in sorted(dir(cls)) if name.startswith("test_law_")}
