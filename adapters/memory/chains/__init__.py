"""The provenance store: memories that say where they came from, with chains of corrections, expiry and deletion."""

from adapters.memory.chains.clock import ReadingClock, WallClock
from adapters.memory.chains.delete import Deletion
from adapters.memory.chains.errors import MemoryInputError, MemoryNotFound, SchemaError
from adapters.memory.chains.recall import Recalled
from adapters.memory.chains.scope import DEFAULT_TENANT, Level, TaskScope
from adapters.memory.chains.source import SourceChains, open_in
from adapters.memory.chains.store import ProvenanceStore, open_file
from adapters.memory.chains.visible import Version

__all__ = [
    "DEFAULT_TENANT",
    "Deletion",
    "Level",
    "MemoryInputError",
    "MemoryNotFound",
    "ProvenanceStore",
    "ReadingClock",
    "Recalled",
    "SchemaError",
    "SourceChains",
    "TaskScope",
    "Version",
    "WallClock",
    "open_file",
    "open_in",
]
