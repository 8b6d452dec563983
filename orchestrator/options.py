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
        """Check the options of an adapter.

        A wrong one raises `InvalidRequest` that names it, what the model says of it, and which options there are.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            names = sorted({".".join(map(str, e["loc"])) for e in error.errors(include_input=False)})
            wrong, known = ", ".join(names), cls.model_fields
            told = "".join(f"; {name}: {known[name].description}" for name in names if name in known)
            message = f"adapter {adapter}: option {wrong} is not valid (allowed: {', '.join(known)}){told}"
            raise InvalidRequest(message, field=f"adapters.{adapter}.{wrong}") from None
