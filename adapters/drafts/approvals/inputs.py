"""What an approval and a receipt may be called, checked before anything is written. No message repeats a value."""

from __future__ import annotations

import re
from typing import Final

from orchestrator import InvalidRequest

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_RECEIPT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def check_name(field: str, value: object) -> None:
    """Raise `InvalidRequest` unless an id, or the name of an action, is one that can hold no sentence."""
    _check(field, value, _NAME, "be 1 to 64 of a-z, 0-9 and -, and begin with none")


def check_receipt(value: object) -> None:
    """Raise `InvalidRequest` unless what a tool gave is an id."""
    _check("receipt", value, _RECEIPT, "be an id: 1 to 128 of A-Z, a-z, 0-9, . _ : and -")


def _check(field: str, value: object, form: re.Pattern[str], wanted: str) -> None:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidRequest(f"{field} must {wanted}", field=field)
