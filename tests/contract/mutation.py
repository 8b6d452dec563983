"""How an adapter is made to go wrong: some of its methods are overridden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from orchestrator import EraseOrder, StorageAdapter

Orders: TypeAlias = Sequence[EraseOrder]


def override(adapter: StorageAdapter, **methods: Callable[..., object]) -> None:
    vars(adapter).update(methods)
