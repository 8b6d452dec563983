"""The scoped memory store, and the adapter through which deletion jobs reach it."""

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.candidates import Candidate, Candidates
from adapters.memory.engine import open_engine
from adapters.memory.facts import Fact
from adapters.memory.forget import Forgotten
from adapters.memory.preferences import PreferenceLog
from adapters.memory.session import NoAccess, Session, SessionMemory
from adapters.memory.sources import SourceKind
from adapters.memory.statements import Constraint, Kept, Reach, Statements
from adapters.memory.store import MemoryStore
from adapters.memory.versions import VersionConflict

__all__ = [
    "Candidate",
    "Candidates",
    "Constraint",
    "Fact",
    "Forgotten",
    "Kept",
    "MemoryAdapter",
    "MemoryStore",
    "NoAccess",
    "PreferenceLog",
    "Reach",
    "Session",
    "SessionMemory",
    "SourceKind",
    "Statements",
    "VersionConflict",
    "open_engine",
]
