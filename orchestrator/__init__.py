"""Expunge's public face for adapter authors: the contract, the errors, the gate. Nothing heavy.

Outsiders import this module and `orchestrator.testing`, nothing else.
"""

from pathlib import Path

from orchestrator.domain.abilities import (
    Expired,
    ExpiringSource,
    InFiles,
    Masters,
    PhysicalStore,
    Replayed,
    RestorableSource,
    WindowStore,
)
from orchestrator.domain.codes import ErrorCode, Reason, Refusal, Residual
from orchestrator.domain.contract import (
    MAX_PAGE,
    Erased,
    EraseOrder,
    Fingerprint,
    Holding,
    PerOrder,
    Revocation,
    Role,
    Scrubbed,
    ScrubReport,
    Seen,
    SourceAdapter,
    StorageAdapter,
    Target,
    Tombstone,
    TombstoneKind,
)
from orchestrator.domain.errors import (
    BadAnswer,
    DeadlinePassed,
    ErasureError,
    ExpungeError,
    GateRefused,
    InvalidRequest,
    KeyringUnusable,
    NeedsConfirmation,
    Permanent,
    Refused,
    RuleRefused,
    StaleSource,
    StoreLocked,
    StoreUnreachable,
    Transient,
)
from orchestrator.domain.hold import Holds
from orchestrator.domain.ports import Clock
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.gate.decide import Gate, Origin, TombstoneLookup, Write
from orchestrator.gate.fingerprint import candidate_tokens, distinctive_tokens, fold
from orchestrator.gate.keyring import Keyring
from orchestrator.registry import AdapterContext
from orchestrator.scan import sqlite as sqlite_files


def open_adapter(state_dir: Path | None, name: str) -> StorageAdapter:
    """Open one adapter by the configuration of a state directory (None: EXPUNGE_DIR, else .expunge here).

    For commands that an adapter contributes. A wrong configuration raises `InvalidRequest`.
    """
    from orchestrator import bootstrap  # noqa: PLC0415 - the database libraries load only where they are used

    return bootstrap.open_adapter(state_dir, name)


__all__ = [
    "MAX_PAGE",
    "AdapterContext",
    "BadAnswer",
    "Clock",
    "DeadlinePassed",
    "EraseOrder",
    "Erased",
    "ErasureError",
    "ErrorCode",
    "Expired",
    "ExpiringSource",
    "ExpungeError",
    "Fingerprint",
    "Gate",
    "GateRefused",
    "Holding",
    "Holds",
    "InFiles",
    "InvalidRequest",
    "Keyring",
    "KeyringUnusable",
    "Masters",
    "NeedsConfirmation",
    "Origin",
    "PerOrder",
    "Permanent",
    "PhysicalStore",
    "Reason",
    "Refusal",
    "Refused",
    "Replayed",
    "Residual",
    "RestorableSource",
    "Revocation",
    "Role",
    "RuleRefused",
    "Scope",
    "ScrubReport",
    "Scrubbed",
    "Seen",
    "Selector",
    "SelectorKind",
    "SourceAdapter",
    "StaleSource",
    "StorageAdapter",
    "StoreLocked",
    "StoreUnreachable",
    "Target",
    "Tombstone",
    "TombstoneKind",
    "TombstoneLookup",
    "Transient",
    "WindowStore",
    "Write",
    "candidate_tokens",
    "distinctive_tokens",
    "fold",
    "open_adapter",
    "sqlite_files",
]
