"""Lengths of time as an operator writes them: 200ms, 15s, 2m, 1h, 7d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

_WRITTEN: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _read(value: object) -> object:
    if isinstance(value, str) and (found := _WRITTEN.fullmatch(value)):
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    return value


Duration = Annotated[timedelta, BeforeValidator(_read), Field(ge=timedelta(0))]
# Of length zero, a budget or a lease would be over before anything has begun.
Budget = Annotated[timedelta, BeforeValidator(_read), Field(gt=timedelta(0))]
