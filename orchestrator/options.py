"""Options of an adapter as a Pydantic model, with the error that an operator understands.

Apart from the rest of the public face, because Pydantic takes time to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.domain.errors import InvalidRequest


class AdapterOptions(BaseModel):
    """Base for what an operator may set for an adapter: unknown options are refused, and no error repeats a value."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def read(cls, adapter: str, given: Mapping[str, object]) -> Self:
        """Check the options of an adapter; a wrong one raises `InvalidRequest` that names it and what is allowed."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            wrong = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors(include_input=False)}))
            message = f"adapter {adapter}: option {wrong} is not valid (allowed: {', '.join(cls.model_fields)})"
            raise InvalidRequest(message, field=f"adapters.{adapter}.{wrong}") from None
