"""What the chains refuse. No message says more than an id, a version or the name of a field."""

from __future__ import annotations

from orchestrator import ErrorCode, InvalidRequest, Permanent, Refused


class MemoryInputError(InvalidRequest):
    """The input is not valid; nothing was written."""


class MemoryNotFound(Refused, LookupError):
    """There is no such memory in this scope; a foreign one looks the same."""

    def __init__(self, memory_id: int) -> None:
        """Name the id that was asked for, and not why it is not there."""
        super().__init__(f"no memory {memory_id} in this scope", memory_id=memory_id)


class SchemaError(Permanent):
    """The database does not hold the tables of a version that this store knows."""

    code = ErrorCode.STORE_REFUSED
