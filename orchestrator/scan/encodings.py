"""In which bytes a text may lie in a file."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from enum import StrEnum


class Encoding(StrEnum):
    """A way to store a value as bytes."""

    UTF_8 = "utf_8"
    UTF_16_LE = "utf_16_le"
    UTF_16_BE = "utf_16_be"
    JSON = "json"  # UTF-8 with quotes, backslashes and control characters escaped
    JSON_ASCII = "json_ascii"  # the same, and everything beyond ASCII as \uXXXX in lower case
    RAW = "raw"  # bytes as they are, such as the float32 values of a vector


def forms(text: str) -> Iterator[tuple[Encoding, bytes]]:
    """Give the bytes of a text in every encoding, as it is and in the normal forms NFC and NFD.

    Forms that say the same are left out, so an ASCII text without quotes has three. Stores and
    file systems normalise without a word, which is why both normal forms are looked for.
    """
    for shape in dict.fromkeys((text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text))):
        plain = _encoded(shape, "utf-8")
        escaped = _encoded(json.dumps(shape, ensure_ascii=False)[1:-1], "utf-8")
        ascii_only = _encoded(json.dumps(shape)[1:-1], "utf-8")
        yield Encoding.UTF_8, plain
        yield Encoding.UTF_16_LE, _encoded(shape, "utf-16-le")
        yield Encoding.UTF_16_BE, _encoded(shape, "utf-16-be")
        if escaped != plain:
            yield Encoding.JSON, escaped
        if ascii_only not in {plain, escaped}:
            yield Encoding.JSON_ASCII, ascii_only


def _encoded(text: str, codec: str) -> bytes:
    # A lone surrogate in a stored text must still be looked for, not end in an error that names the text.
    return text.encode(codec, "surrogatepass")
