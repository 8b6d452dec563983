"""The scoped memory store, and the adapter through which deletion jobs reach it."""

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.engine import open_engine
from adapters.memory.facts import Fact
from adapters.memory.forget import Forgotten
from adapters.memory.sources import SourceKind
from adapters.memory.store import MemoryStore

__all__ = ["Fact", "Forgotten", "MemoryAdapter", "MemoryStore", "SourceKind", "open_engine"]
