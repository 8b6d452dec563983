"""Fingerprints: keyed hashes of windows of a value, by which a scan sees its bytes and learns no text.

A window has a rolling hash (a polynomial over its 16 bytes modulo 2**64, after Karp and Rabin,
"Efficient randomized pattern-matching algorithms", 1987) that a scan can compute for each
position of a file, and an HMAC-SHA256 that proves a hit.

The rolling hash is not stored as it is: whoever knows the bytes of one window could solve the
polynomial for its base, and then try other texts against the table. It is stored masked by
an HMAC of its mac, which looks like chance to anybody without the key.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from operator import getitem
from typing import Final

from orchestrator.domain.contract import Fingerprint
from orchestrator.domain.errors import InvalidRequest
from orchestrator.gate.keyring import Keyring
from orchestrator.scan.encodings import Encoding, forms
from orchestrator.scan.keys import Keys
from orchestrator.scan.windows import STRIDE, WINDOW, starts

MODULUS: Final = 2**64
WIDTH: Final = {Encoding.UTF_16_LE: 2, Encoding.UTF_16_BE: 2}
SIGN: Final = 2**63


@dataclass(frozen=True, kw_only=True, slots=True)
class Prints:
    """What can be looked for of a value.

    `not_probeable` names the encodings in which the value has fewer than 16 bytes, or nothing
    but a repetition of four bytes or fewer: a scan cannot see it there, so it must not be
    called clean for them.
    """

    rows: tuple[Fingerprint, ...]
    not_probeable: frozenset[Encoding]


class Fingerprinter:
    """Makes fingerprints under one set of keys; the same value always has the same ones."""

    def __init__(self, keys: Keys) -> None:
        """Take the keys; what each byte of a window adds to its hash is worked out once, 16 by 256 numbers."""
        self._keys = keys
        weights = [pow(keys.base, power, MODULUS) for power in reversed(range(WINDOW))]
        self._terms = tuple(tuple(byte * weight % MODULUS for byte in range(256)) for weight in weights)

    @classmethod
    def of(cls, ring: Keyring) -> Fingerprinter:
        """Make one from a keyring; the same ring, or that ring with a secret added, gives the same fingerprints."""
        return cls(Keys.derive(ring))

    @property
    def base(self) -> int:
        """The secret base of the rolling hash, for who scans."""
        return self._keys.base

    def of_text(self, text: str, stride: int = STRIDE) -> Prints:
        """Hash windows of a text in every encoding in which it may be stored.

        `stride` is the distance in bytes between two windows of an encoding that is longer than 32
        bytes; it is doubled for UTF-16, where a character takes two: any run of 16 characters is
        seen there.
        """
        return self._prints(forms(text), stride)

    def of_bytes(self, value: bytes | bytearray | memoryview, stride: int = STRIDE) -> Prints:
        """Hash windows of bytes that are stored as they are, such as a vector of float32 values."""
        return self._prints([(Encoding.RAW, bytes(value))], stride)

    def roll(self, window: bytes) -> int:
        """Give the rolling hash of 16 bytes: the sum of byte i times base**(15 - i), modulo 2**64."""
        return sum(map(getitem, self._terms, window)) % MODULUS

    def mac(self, window: bytes) -> bytes:
        """Give the 32 bytes of HMAC-SHA256 that prove a window."""
        return hmac.digest(self._keys.window, window, "sha256")

    def unsealed(self, fingerprint: Fingerprint) -> int:
        """Give back the rolling hash, from 0 to 2**64 - 1, that a fingerprint was made with."""
        return (fingerprint.roll % MODULUS) ^ self._mask(bytes.fromhex(fingerprint.mac))

    def _prints(self, values: Iterable[tuple[Encoding, bytes]], stride: int) -> Prints:
        if stride < 1:
            message = "the stride must be at least one byte"
            raise InvalidRequest(message, field="stride")
        rows: dict[Fingerprint, None] = {}
        unseen = set()
        for encoding, value in values:
            places = starts(value, stride * WIDTH.get(encoding, 1))
            if not places:
                unseen.add(encoding)
            rows.update(dict.fromkeys(self._fingerprint(value[place : place + WINDOW]) for place in places))
        return Prints(rows=tuple(rows), not_probeable=frozenset(unseen))

    def _fingerprint(self, window: bytes) -> Fingerprint:
        mac = self.mac(window)
        sealed = self.roll(window) ^ self._mask(mac)
        return Fingerprint(roll=sealed - MODULUS if sealed >= SIGN else sealed, mac=mac.hex())

    def _mask(self, mac: bytes) -> int:
        return int.from_bytes(hmac.digest(self._keys.seal, mac, "sha256")[:8], "big")
