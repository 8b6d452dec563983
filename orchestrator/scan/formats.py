"""Files in which no text can be seen because they are compressed or encrypted in whole, by their first bytes.

What has no first bytes of its own cannot be recognised: a database of SQLCipher, an encrypted
binary message of OpenPGP, a raw deflate stream. Nor can what is compressed inside a file that
is not: large values of PostgreSQL (TOAST), pages of Parquet, streams of a PDF. A store
that does such things answers a scrub with `unsupported`, and says by a residual what stays.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class Unscannable(StrEnum):
    """Why nothing can be seen in a file."""

    GZIP = "gzip"
    ZSTD = "zstd"
    XZ = "xz"
    BZIP2 = "bzip2"
    ZIP = "zip"  # and all that is one: docx, jar, npz
    LZ4 = "lz4"
    SEVEN_ZIP = "seven_zip"
    SNAPPY = "snappy"
    AGE = "age"
    PGP = "pgp"
    OPENSSL = "openssl"
    LUKS = "luks"
    REDIS_DUMP = "redis_dump"  # holds strings compressed by LZF, unless its server is told not to


HEAD: Final = 64
_MAGIC: Final = {
    Unscannable.GZIP: rb"\x1f\x8b",
    # A frame of zstd, or one to be skipped, with which some writers of zstd and lz4 begin.
    Unscannable.ZSTD: rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18",
    Unscannable.XZ: rb"\xfd7zXZ\x00",
    Unscannable.BZIP2: rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)",
    Unscannable.ZIP: rb"PK(?:\x03\x04|\x05\x06|\x07\x08)",
    Unscannable.LZ4: rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18",
    Unscannable.SEVEN_ZIP: rb"7z\xbc\xaf\x27\x1c",
    Unscannable.SNAPPY: rb"\xff\x06\x00\x00sNaPpY",
    Unscannable.AGE: rb"age-encryption\.org/|-----BEGIN AGE ENCRYPTED FILE-----",
    Unscannable.PGP: rb"-----BEGIN PGP MESSAGE-----",
    Unscannable.OPENSSL: rb"Salted__",
    Unscannable.LUKS: rb"LUKS\xba\xbe",
    Unscannable.REDIS_DUMP: rb"REDIS\d{4}",
}
_PATTERNS: Final = {code: re.compile(magic) for code, magic in _MAGIC.items()}


def recognised(head: bytes) -> Unscannable | None:
    """Tell by the first 64 bytes of a file why nothing can be seen in it; None where nothing speaks against it."""
    return next((code for code, pattern in _PATTERNS.items() if pattern.match(head)), None)
