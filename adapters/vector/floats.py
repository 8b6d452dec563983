"""Vectors as bytes: float32, the lowest byte first, as both a SQLite file keeps them and a scan looks for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from orchestrator import InvalidRequest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Numbers: TypeAlias = "Sequence[float] | npt.NDArray[Any]"
"""A vector as a model gives it."""
WIDTH: Final = 4
"""Bytes of one number."""
MEASURABLE: Final[Mapping[str, tuple[float, float]]] = {
    "sqlite": (0.0, math.inf),
    # pgvector adds squares up as float32: those of a longer vector overflow, those of a shorter one vanish.
    "postgresql": (1e-18, 1e18),
}
"""Between which lengths the angle of a vector can be told."""


def packed(vector: Numbers, dimensions: int, database: str) -> bytes:
    """Give the bytes of a vector.

    Raises `InvalidRequest` for one of another number of dimensions, or without a length.
    """
    import numpy as np  # noqa: PLC0415 - loads only where vectors are worked with

    try:
        with np.errstate(over="ignore"):
            numbers = np.asarray(vector, dtype="<f4")
    except (TypeError, ValueError):
        message = "vector must be a list of numbers"
        raise InvalidRequest(message, field="vector") from None
    if numbers.shape != (dimensions,):
        raise InvalidRequest(f"vector must hold {dimensions} numbers", field="vector")
    shortest, longest = MEASURABLE[database]
    # Without a warning where a number is infinite: that is what is asked.
    if not shortest < math.sqrt(sum(float(number) ** 2 for number in numbers)) < longest:
        message = "vector must hold finite numbers, and not zeros alone"
        raise InvalidRequest(message, field="vector")
    return numbers.tobytes()


def rows(blobs: Sequence[bytes]) -> npt.NDArray[np.floating[Any]]:
    """Give vectors of one length as the rows of a matrix, in double precision: no square of theirs overflows."""
    import numpy as np  # noqa: PLC0415 - as above

    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), -1).astype(np.float64)


def directions(matrix: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Give rows of length 1; one that has none points nowhere, and is near to nothing."""
    import numpy as np  # noqa: PLC0415 - as above

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    pointing: npt.NDArray[np.floating[Any]] = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return pointing


def written(vector: bytes) -> str:
    """Give a vector as pgvector reads it; the numbers come out as they went in."""
    import numpy as np  # noqa: PLC0415 - as above

    return "[" + ",".join(map(repr, np.frombuffer(vector, dtype="<f4").tolist())) + "]"


def read(text: str) -> bytes:
    """Give the bytes of a vector as pgvector writes it."""
    import numpy as np  # noqa: PLC0415 - as above

    return np.array(text[1:-1].split(","), dtype="<f4").tobytes()
