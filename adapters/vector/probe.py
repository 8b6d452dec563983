"""What is kept of an erased vector until its erasure was verified: enough to ask for its neighbourhood, and no more.

A sketch is 64 bits: on which side of 64 planes the vector lies. The planes are made from the
keyring and differ from point to point, so without the keyring a sketch is 64 bits of chance, and
with it no vector comes back from it. The planes of one side added up point into the
neighbourhood of the vector: nearer to it than nearly anything else, far from being it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from orchestrator import Gate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BITS: Final = 64
_SIGN: Final = 2 ** (BITS - 1)


def sketch(gate: Gate, tenant: str, point: str, vector: bytes) -> int:
    """Give the sketch of a vector, as a signed number."""
    import numpy as np  # noqa: PLC0415 - loads only where vectors are worked with

    numbers = np.frombuffer(vector, dtype="<f4").astype(np.float64)
    sides = np.packbits(_planes(gate, tenant, point, len(numbers)) @ numbers >= 0).tobytes()
    return int.from_bytes(sides, "big") - _SIGN


def probe(gate: Gate, tenant: str, point: str, kept: int, dimensions: int) -> npt.NDArray[np.floating[Any]]:
    """Give a vector to ask with: whole numbers from -64 to 64, in the direction of what the sketch was made of."""
    import numpy as np  # noqa: PLC0415 - as above

    sides = np.unpackbits(np.frombuffer((kept + _SIGN).to_bytes(BITS // 8, "big"), dtype=np.uint8))
    return (2.0 * sides - 1) @ _planes(gate, tenant, point, dimensions)


def _planes(gate: Gate, tenant: str, point: str, dimensions: int) -> npt.NDArray[np.floating[Any]]:
    """Give the planes of a point, one a row: each number is 1 or -1."""
    import numpy as np  # noqa: PLC0415 - as above

    seed = gate.handle(tenant, "vector-probe", point)
    bits = hashlib.shake_256(seed.encode()).digest(BITS * dimensions // 8)
    return 2.0 * np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).reshape(BITS, dimensions) - 1
