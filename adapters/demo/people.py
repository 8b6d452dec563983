"""The demo's people and what they tell: five users of two tenants, and who of them is going to be forgotten.

Each text has a sign by which the demo knows it again wherever it was copied to; no two texts
share anything else, so that a look at bytes can tell whose they are.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from orchestrator import Scope

READER: Final = Scope(tenant="tenant-a", user="reader-a", project="trip-planning")
GUEST: Final = Scope(tenant="tenant-a", user="reader-b", project="trip-planning")
CLIENT: Final = Scope(tenant="tenant-a", user="reader-c", project="research")
WITNESS: Final = Scope(tenant="tenant-b", user="reader-d", project="research")
SCOPES: Final = (
    READER,
    GUEST,
    CLIENT,
    Scope(tenant=CLIENT.tenant, user=CLIENT.user, project="trip-planning"),
    Scope(tenant="tenant-b", user=READER.user, project=READER.project),  # another person of the same name
    WITNESS,
)
KEYS: Final = 10
VERSIONS: Final = 3
DIMENSIONS: Final = 384
"""Of the vectors, as a new configuration says."""

SOURCE: Final = "trip-planning/turn-6"
SECRET_KEY: Final = "passport"
SECRET: Final = "The passport number is P1234567."
OTHER_KEY: Final = "allergy"
OTHER_SECRET: Final = "Allergic to walnuts, see letter Q7654321."
EXPIRING_KEY: Final = "door"
EXPIRING: Final = "The door opens with S9988776 until noon."
MISTYPED: Final = "pasport"

OF_SOURCE: Final = "P1234567"
OF_KEY: Final = "Q7654321"
OF_SUBJECT: Final = "R5550001"
OF_CLOCK: Final = "S9988776"
SIGNS: Final = (OF_SOURCE, OF_KEY, OF_SUBJECT, OF_CLOCK)
"""What must be nowhere at the end, by what it goes: a source, a key, a whole subject, the clock."""
CONTROL: Final = "Z1112223"
"""What has to be seen at the end: a look that does not see it has seen nothing."""

QUESTIONS: Final = {SECRET_KEY: "Which passport do I travel with?", OTHER_KEY: "What may I not eat?"}
TRANSCRIPT: Final = f"turn-6, reader-a: {SECRET} Please book the train.\n"


class Telling(NamedTuple):
    """What somebody tells: it becomes a version of a fact."""

    scope: Scope
    key: str
    text: str
    source: str


def tellings() -> Iterator[Telling]:
    """Give what everybody tells, in order; the expiring fact is told later."""
    for scope in SCOPES:
        for n in range(KEYS):
            for version in range(1, VERSIONS + 1):
                if scope == READER and version == VERSIONS and n < len(_SECRETS):
                    yield _SECRETS[n]
                else:
                    source = f"{scope.user}/{scope.project}/turn-{n}-{version}"
                    yield Telling(scope, f"key-{n:02}", _text(scope, n, version), source)


def questions(key: str) -> tuple[str, str]:
    """Give what is asked about a key."""
    return QUESTIONS.get(key, f"What about {key}?"), f"Tell me again about {key}."


def embed(text: str) -> list[float]:
    """Give a vector that is the same for the same text, and unlike that of any other."""
    return [byte - 127.5 for byte in hashlib.shake_256(text.encode()).digest(DIMENSIONS)]


def packed(text: str) -> bytes:
    """Give the bytes of a text's vector: float32, the lowest byte first."""
    return struct.pack(f"<{DIMENSIONS}f", *embed(text))


def goes(text: object) -> bool:
    """Tell whether something that was written down holds a text that has to go."""
    return any(sign in str(text) for sign in SIGNS)


_SECRETS: Final = (
    Telling(READER, SECRET_KEY, SECRET, SOURCE),
    Telling(READER, OTHER_KEY, OTHER_SECRET, "trip-planning/turn-7"),
)


def _text(scope: Scope, n: int, version: int) -> str:
    sign = OF_SUBJECT if scope.user == CLIENT.user else CONTROL if scope == WITNESS else "note"
    return f"{sign} {hashlib.sha256(f'{scope.canonical()} {n} {version}'.encode()).hexdigest()[:40]}"
