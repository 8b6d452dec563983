"""A manifest is believed as a whole or not at all: what leads elsewhere, or means two things, is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.backup import BackupAdapter
from orchestrator import ErrorCode, InvalidRequest, Permanent
from tests.integration.backup_harness import Stage, adapters_in, backups

__all__ = ["backups"]

HOSTILE_FILES = (
    "../memory.db",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../memory.db",
    "a//b.db",
    "a/./b.db",
    ".",
    "..",
    "",
    ".windows.db",
    ".work-1.db",
    "a/.hidden.db",
    "back\\slash.db",
    "new\nline.db",
    "nul\0.db",
    "copy.db-wal",
    "copy.db-journal",
    "x" * 513,
)
HOSTILE_HANDLES = ("", " ", "../x", "a b", "*", "%", "o'brien", "new\nline", "\u00e9", "unlisted:1", "x" * 129, ".x")


def with_entry(backups: Stage, **parts: object) -> None:
    written = backups.written()
    written["copies"][0] |= parts
    backups.write(written)


def is_refused(backups: Stage) -> None:
    """Hold that every call refuses the manifest, says nothing of what it holds, and leaves all as it is."""
    order = backups.order(targets=())
    before = backups.manifest.read_bytes(), sorted(backups.copies_folder.iterdir())
    calls = (
        lambda: backups.backup.find([order]),
        lambda: backups.backup.erase([order]),
        lambda: backups.backup.verify([order]),
        lambda: backups.backup.closed(["x"]),
        backups.backup.copies,
        backups.backup.take,
    )
    for call in calls:
        with pytest.raises(Permanent) as caught:
            call()
        assert caught.value.code is ErrorCode.STORE_REFUSED
        assert "anna" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert (backups.manifest.read_bytes(), sorted(backups.copies_folder.iterdir())) == before


@pytest.mark.parametrize("file", HOSTILE_FILES)
def test_file_that_is_not_plainly_below_the_folder_is_refused(backups: Stage, file: str) -> None:
    backups.take()
    with_entry(backups, file=file)
    is_refused(backups)


@pytest.mark.parametrize("handle", HOSTILE_HANDLES)
def test_handle_that_could_mean_something_else_is_refused(backups: Stage, handle: str) -> None:
    backups.take()
    with_entry(backups, handle=handle)
    is_refused(backups)


@pytest.mark.parametrize(
    "parts",
    [
        {"policy": "forever"},
        {"policy": "window"},
        {"keep_until": "2099-01-31T03:00:00Z"},
        {"policy": "window", "keep_until": "2099-01-31T03:00:00"},
        {"taken_at": "yesterday, said anna"},
        {"taken_at": "2026-01-31T03:00:00"},
        {"sha256": "abc"},
        {"bytes": -1},
        {"owner": "anna"},
        {"pending": {"sha256": "abc", "bytes": 1}},
    ],
)
def test_entry_that_does_not_hold_together_is_refused(backups: Stage, parts: Mapping[str, object]) -> None:
    backups.take()
    with_entry(backups, **parts)
    is_refused(backups)


@pytest.mark.parametrize("same", ["handle", "file"])
def test_two_copies_of_one_name_are_refused(backups: Stage, same: str) -> None:
    backups.take()
    backups.take()
    written = backups.written()
    written["copies"][1][same] = written["copies"][0][same]
    backups.write(written)
    is_refused(backups)


@pytest.mark.parametrize(
    "text", ["", "anna", "[]", "null", '{"copies": 1}', '{"schema": "expunge/backup-manifest/2", "copies": []}', "\xff"]
)
def test_text_that_is_no_manifest_is_refused(backups: Stage, text: str) -> None:
    backups.take()
    backups.manifest.write_bytes(text.encode("latin-1"))
    is_refused(backups)


def test_manifest_of_others_is_read_as_they_wrote_it(backups: Stage) -> None:
    """A file in a folder of its own, other offsets, more tenants: all of the form, none by our own hand."""
    copy = backups.take()
    place = backups.copies_folder / "2026-10-27"
    place.mkdir()
    backups.path(copy).rename(place / "memory of the night.db")
    entry: dict[str, Any] = {
        **backups.written()["copies"][0],
        "handle": "2026-10-27T03:00Z-memory",
        "file": "2026-10-27/memory of the night.db",
        "taken_at": "2026-10-27T05:00:00+02:00",
    }
    backups.write({"schema": "expunge/backup-manifest/1", "copies": [entry]})
    found = backups.found(backups.revoked())
    assert [target.id for target in found.targets] == ["2026-10-27T03:00Z-memory"]
    assert backups.erase(found).erased == 1
    (after,) = backups.written()["copies"]
    assert after["sha256"] != entry["sha256"]
    assert {**after, "sha256": 0, "bytes": 0, "taken_at": 0} == {**entry, "sha256": 0, "bytes": 0, "taken_at": 0}


def test_link_on_the_way_to_a_copy_is_not_followed(backups: Stage) -> None:
    copy = backups.take()
    outside = backups.folder / "outside"
    outside.mkdir()
    victim = outside / copy.file
    backups.path(copy).rename(victim)
    (backups.copies_folder / "inside").symlink_to(outside)
    with_entry(backups, file=f"inside/{copy.file}")
    before = victim.read_bytes()
    found = backups.found(backups.revoked())
    assert found.targets, "nobody knows what it holds"
    with pytest.raises(Permanent):
        backups.erase(found)
    assert victim.read_bytes() == before
    assert backups.look(found).inconclusive


def test_manifest_is_replaced_as_a_whole(backups: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    backups.take()
    before = backups.manifest.read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        with pytest.raises(Exception, match="does not answer"):
            backups.take()
    assert backups.manifest.read_bytes() == before
    backups.take()
    assert len(json.loads(backups.manifest.read_text())["copies"]) == 2
    assert backups.debris() == []


@pytest.mark.parametrize("option", [{"manifest": 7}, {"path": "x"}, {"source": None}])
def test_wrong_option_is_named_with_those_that_are_allowed(tmp_path: Path, option: dict[str, object]) -> None:
    (name,) = option
    with pytest.raises(InvalidRequest, match=rf"option {name} .*allowed: manifest, source"):
        adapters_in(tmp_path, **option)


def test_paths_are_below_the_state_directory(backups: Stage) -> None:
    other = BackupAdapter(backups.backup._context, manifest="elsewhere/list.json", source="memory.db")
    copy = other.take()
    assert (backups.folder / "elsewhere" / copy.file).is_file()
    assert json.loads((backups.folder / "elsewhere" / "list.json").read_text())["copies"][0]["handle"] == copy.handle
