"""The secrets of the scan, each with a label of its own, derived from the keyring."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Self

from orchestrator.gate.keyring import Keyring

# `Scope` refuses an empty tenant, so this key of the ring belongs to nobody else.
NO_TENANT = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """What a fingerprint is made under; none of it is ever stored or printed.

    `base` is the odd 64-bit base of the rolling hash, `window` the 32-byte key of the macs,
    `seal` the 32-byte key under which a rolling hash is stored.
    """

    base: int = field(repr=False)
    window: bytes = field(repr=False)
    seal: bytes = field(repr=False)

    @classmethod
    def derive(cls, ring: Keyring) -> Self:
        """Derive the keys from the ring's oldest secret by HKDF, then HMAC-SHA256 with a label each.

        They are the same for all tenants, because one pass over a file looks for the bytes of
        every job, and a pass has one base. They stay the same when a secret is added to the
        ring: rows that were written before are still found.
        """
        root = ring.tenant_key(NO_TENANT, ring.oldest)
        return cls(
            base=int.from_bytes(_labelled(root, b"base")[:8], "big") | 1,
            window=_labelled(root, b"window"),
            seal=_labelled(root, b"seal"),
        )


def _labelled(root: bytes, label: bytes) -> bytes:
    return hmac.digest(root, b"expunge scan " + label, "sha256")
