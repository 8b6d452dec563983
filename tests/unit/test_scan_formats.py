"""Files that hide their bytes: recognised by their first ones, and never called clean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.scan.formats import Unscannable
from orchestrator.scan.report import Verdict
from tests.unit.scan_harness import NOISE, VALUE, folder, look, of

__all__ = ["folder"]


HEADS = {
    Unscannable.GZIP: [b"\x1f\x8b\x08\0"],
    Unscannable.ZSTD: [b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", b"\x5f\x2a\x4d\x18"],
    Unscannable.XZ: [b"\xfd7zXZ\0"],
    Unscannable.BZIP2: [b"BZh91AY&SY", b"BZh1\x17\x72\x45\x38\x50\x90"],
    Unscannable.ZIP: [b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"],
    Unscannable.LZ4: [b"\x04\x22\x4d\x18", b"\x02\x21\x4c\x18"],
    Unscannable.SEVEN_ZIP: [b"7z\xbc\xaf\x27\x1c"],
    Unscannable.SNAPPY: [b"\xff\x06\0\0sNaPpY"],
    Unscannable.AGE: [b"age-encryption.org/v1\n", b"-----BEGIN AGE ENCRYPTED FILE-----\n"],
    Unscannable.PGP: [b"-----BEGIN PGP MESSAGE-----\n"],
    Unscannable.OPENSSL: [b"Salted__"],
    Unscannable.LUKS: [b"LUKS\xba\xbe\0\x02"],
    Unscannable.REDIS_DUMP: [b"REDIS0011"],
}


@pytest.mark.parametrize(("code", "head"), [(code, head) for code, heads in HEADS.items() for head in heads])
def test_compressed_or_encrypted_file_is_not_scannable_but_what_is_seen_in_it_is_found(
    folder: Path, code: Unscannable, head: bytes
) -> None:
    (folder / "b").write_bytes(head + NOISE)
    (folder / "c").write_bytes(b"." + head + NOISE)
    (folder / "d").write_bytes(head + NOISE + VALUE)
    report = look(folder)
    assert of(report, folder / "b").unscannable is code
    verdicts = [of(report, folder / name).verdict for name in "abcd"]
    assert verdicts == [Verdict.CLEAN, Verdict.NOT_SCANNABLE, Verdict.CLEAN, Verdict.FOUND]
    (folder / "d").unlink()
    assert (look(folder).of("job"), look(folder).verdict) == (Verdict.NOT_SCANNABLE,) * 2


def test_every_format_has_an_example() -> None:
    assert set(Unscannable) == set(HEADS)


def test_doubt_about_a_compressed_file_is_a_reason_to_look_again(folder: Path) -> None:
    (folder / "a").write_bytes(b"PK\x03\x04" + NOISE)
    report = look(folder, told=lambda *_: os.truncate(folder / "a", 5000))
    assert of(report, folder / "a").verdict is Verdict.INCONCLUSIVE
