"""Keys of the tombstones: a ring with check values, so that a wrong key refuses instead of opening the gate."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from orchestrator.domain.errors import KeyringUnusable

SECRET_BYTES: Final = 32
NAME_DIGITS: Final = 8
CHECKED_TEXT: Final = b"expunge keyring check value"
_RESTORE: Final = "restore it from your copy"


class Keyring:
    """Named secrets, one of them current; old ones live as long as the tombstones made under them.

    Each tenant has a key of its own, derived by HKDF-SHA256 (RFC 5869) with the tenant in
    the info field, so that the same text of two tenants never shares a mac.
    """

    def __init__(self, *, current: str, keys: Mapping[str, bytes]) -> None:
        """Take checked secrets; `current` must name one of them."""
        if current not in keys:
            message = f"the keyring's current key {current!r} is not in it: {_RESTORE}"
            raise KeyringUnusable(message)
        self.current = current
        self._keys = dict(keys)
        self.oldest = next(iter(self._keys))
        self.tenant_key = lru_cache(maxsize=4096)(self._derive)

    @property
    def key_ids(self) -> frozenset[str]:
        """Names of all keys of the ring."""
        return frozenset(self._keys)

    def _derive(self, tenant: str, key_id: str) -> bytes:
        """Derive the 32-byte key of one tenant from one secret of the ring."""
        info = b"expunge tenant " + tenant.encode()
        return HKDF(algorithm=SHA256(), length=SECRET_BYTES, salt=None, info=info).derive(self._keys[key_id])

    @classmethod
    def parse(cls, text: str) -> Keyring:
        """Read `{"current": id, "keys": {id: {"secret": base64, "check": hex}}}`.

        Raises `KeyringUnusable` for anything that is not a whole ring with matching check
        values. The text itself is never repeated.
        """
        try:
            ring = json.loads(text)
            entries = {str(name): (entry["secret"], entry["check"]) for name, entry in ring["keys"].items()}
            current = str(ring["current"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            message = f"the keyring is not readable as JSON with `current` and `keys`: {_RESTORE}"
            raise KeyringUnusable(message) from None
        return cls(current=current, keys={name: _checked(name, *entry) for name, entry in entries.items()})

    def dump(self) -> str:
        """Give the ring as text, secrets included: it belongs into a file of mode 0600."""
        keys = {
            name: {"secret": base64.b64encode(secret).decode(), "check": check_value(secret)}
            for name, secret in self._keys.items()
        }
        return json.dumps({"current": self.current, "keys": keys}, indent=2)

    @classmethod
    def create(cls) -> Keyring:
        """Make a ring of one fresh random secret."""
        name, secret = _fresh()
        return cls(current=name, keys={name: secret})

    def rotate(self) -> Keyring:
        """Give a ring with one more secret, which is current from now on."""
        name, secret = _fresh()
        return Keyring(current=name, keys={**self._keys, name: secret})


def check_value(secret: bytes) -> str:
    """Give 32 hex digits that tell a secret from another without giving it away."""
    return hmac.new(secret, CHECKED_TEXT, hashlib.sha256).hexdigest()[:32]


def _fresh() -> tuple[str, bytes]:
    """Make a secret and its name.

    The name tells one secret from another: where a lost ring is replaced by a new one, tombstones
    under the old names refuse every write, instead of being compared under the wrong secret.
    """
    secret = secrets.token_bytes(SECRET_BYTES)
    return f"tk-{check_value(secret)[:NAME_DIGITS]}", secret


def _checked(name: str, secret_text: object, check: object) -> bytes:
    """Decode one secret and hold it against its check value."""
    try:
        secret = base64.b64decode(str(secret_text), validate=True)
    except ValueError:
        secret = b""
    if len(secret) < SECRET_BYTES:
        message = f"key {name!r} of the keyring is missing or shorter than {SECRET_BYTES} bytes: {_RESTORE}"
        raise KeyringUnusable(message)
    if not hmac.compare_digest(check_value(secret).encode(), str(check).encode("utf-8", "surrogatepass")):
        message = f"key {name!r} of the keyring does not match its check value: {_RESTORE}"
        raise KeyringUnusable(message)
    return secret
