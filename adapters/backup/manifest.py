"""The manifest: which copies there are, what becomes of each, and what their files hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from adapters.backup import disk
from orchestrator import ErrorCode, Permanent

SCHEMA: Final = "expunge/backup-manifest/1"
UNLISTED: Final = "unlisted:"
"""How the handles of files begin that the manifest does not name."""
_DRAFT: Final = ".manifest.tmp"
_Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}\z")]
_Handle = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,127}\z")]
_STRICT: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)


class Policy(StrEnum):
    """What a job may do to a copy."""

    REWRITE = "rewrite"  # what is to go is taken out of the file
    WINDOW = "window"  # the file cannot be edited, and goes as a whole when its time has come


class Contents(BaseModel):
    """What a file holds, byte for byte."""

    model_config = _STRICT

    sha256: _Hex
    bytes: Annotated[int, Field(ge=0)]


class Copy(Contents):
    """One copy. `file` is below the manifest's folder, `positions` the accepted position of each tenant in it.

    `pending` is what the file is about to hold: after a crash it holds this or what is written
    above it, and `Folder.alone` tells which.
    """

    handle: _Handle
    file: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    taken_at: AwareDatetime
    policy: Policy
    keep_until: AwareDatetime | None = None
    source: str
    positions: dict[str, int]
    pending: Contents | None = None

    @property
    def contents(self) -> Contents:
        """What the file holds while nothing is pending."""
        return Contents(sha256=self.sha256, bytes=self.bytes)

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if (self.keep_until is None) is (self.policy is Policy.WINDOW):
            message = "keep_until stands with the policy window, and with no other"
            raise ValueError(message)
        if self.handle.startswith(UNLISTED) or not _is_below(self.file):
            message = "a handle or file is none that a copy may have"
            raise ValueError(message)
        return self


class Manifest(BaseModel):
    """All copies; no two have the same handle or file."""

    model_config = _STRICT

    schema_name: Literal["expunge/backup-manifest/1"] = Field(default=SCHEMA, alias="schema")
    copies: tuple[Copy, ...] = ()

    @model_validator(mode="after")
    def _are_different(self) -> Self:
        for names in ({c.handle for c in self.copies}, {c.file for c in self.copies}):
            if len(names) != len(self.copies):
                message = "two copies have the same handle or file"
                raise ValueError(message)
        return self

    def of(self, handle: str) -> Copy | None:
        """Give the copy of a handle, None where there is none."""
        return next((copy for copy in self.copies if copy.handle == handle), None)

    def having(self, copy: Copy) -> Manifest:
        """Give a manifest with this copy, in the place of the one with its handle or behind all others."""
        kept = tuple(copy if old.handle == copy.handle else old for old in self.copies)
        return Manifest(copies=(*kept, copy) if self.of(copy.handle) is None else kept)

    def without(self, handles: Iterable[str]) -> Manifest:
        """Give a manifest without some copies."""
        gone = set(handles)
        return Manifest(copies=tuple(copy for copy in self.copies if copy.handle not in gone))


def read(path: Path) -> Manifest:
    """Read a manifest; `FileNotFoundError` where there is none, `Permanent` for one that is not as it should be."""
    text = path.read_bytes()
    try:
        return Manifest.model_validate_json(text)
    except ValidationError:
        # Which part is wrong may be a name of somebody's.
        message = f"The backup manifest is not one of the form {SCHEMA}: correct it, or put it back from a copy."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED) from None


def write(path: Path, manifest: Manifest) -> None:
    """Replace a manifest as a whole; a reader sees the old one or the new one."""
    draft = path.with_name(_DRAFT)
    draft.unlink(missing_ok=True)  # of a writer that has died: the caller holds the lock
    disk.make_private(draft)
    told = manifest.model_dump(mode="json", by_alias=True, exclude_none=True)
    draft.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    disk.move_over(draft, path)


def is_ours(name: str) -> bool:
    """Tell whether a name is that of a manifest being written."""
    return name == _DRAFT


def _is_below(file: str) -> bool:
    """Tell whether a name leads to a place below the folder, and to none of our own files, which begin with a dot."""
    parts = file.split("/")
    plain = all(part and not part.startswith(".") and part.isprintable() and "\\" not in part for part in parts)
    return plain and not file.endswith(disk.SIDECARS)
