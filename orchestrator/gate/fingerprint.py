"""Turning texts and tokens into keyed hashes: the only form in which a tombstone knows them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Collection
from typing import Final

MAX_TOKENS: Final = 16
MIN_LETTERS: Final = 5
_WORD: Final = re.compile(r"\w+")
_DIGIT: Final = re.compile(r"\d")


def fold(text: str) -> str:
    """Bring a text into the form in which two texts count as the same: NFKC, casefold, single spaces.

    Casefolding can undo the normal form, so it is applied once more afterwards (Unicode
    standard, section 3.13, D146).
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def candidate_tokens(text: str) -> frozenset[str]:
    """Give the folded tokens that could be distinctive: with a digit, or of five letters and more."""
    return frozenset(t for t in _WORD.findall(fold(text)) if len(t) >= MIN_LETTERS or _DIGIT.search(t))


def distinctive_tokens(text: str, elsewhere: Callable[[Collection[str]], Collection[str]]) -> tuple[str, ...]:
    """Choose at most 16 tokens of a text that occur in no other live text of its scope.

    `elsewhere` is asked which of the candidates occur in other live texts. Tokens with a
    digit come first, then longer ones: they tell most.
    """
    candidates = candidate_tokens(text)
    alone = candidates.difference(elsewhere(candidates))
    ranked = sorted(alone, key=lambda t: (_DIGIT.search(t) is None, -len(t), t))
    return tuple(ranked[:MAX_TOKENS])


def keyed_hash(key: bytes, *parts: str | int | None) -> str:
    """Give HMAC-SHA256 (64 hex digits) over the parts as canonical JSON: no delimiter can join two of them."""
    canonical = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    # surrogatepass: a lone surrogate in a stored text must still have a mac, not an exception.
    return hmac.new(key, canonical.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
