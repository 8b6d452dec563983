"""Who is in a test of the contract: what is to go, and those that must not notice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestrator.domain.contract import Target
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.store import Record

SUBJECT: Final = Selector(kind=SelectorKind.SUBJECT)
TEXT: Final = "The passport number is P1234567."
S1: Final = Scope(tenant="t-1", user="s-1", project="p-1")
EVERY_PROJECT: Final = Scope(tenant="t-1", user="s-1")
HOSTILE: Final = (
    "user:1",
    "user:10",
    "User:1",
    "user:1 ",
    "user:*",
    "user:?",
    "user:[1]",
    "user:%",
    "user:_",
    "*",
    "%",
    "o'brien",
    'say "hi"',
    "back\\slash",
    "new\nline",
    "{user}:1",
    "smile-\U0001f600",
    "x" * 512,
    "x" * 511,
    "caf\u00e9",  # NFC
    "cafe\u0301",  # NFD
)


def record_of(scope: Scope, key: str, fact: str, *, text: str = TEXT, source: str | None = None) -> Record:
    """Make a record of one fact."""
    made = Target(kind="fact", id=fact, version=1)
    return Record(scope=scope, key=key, text=text, source=source or f"turn-{fact}", fact=made)


@dataclass(frozen=True, kw_only=True)
class People:
    """Everybody of one test: what is to go, and those that must not notice."""

    passport: Record
    allergy: Record
    abroad: Record  # the subject in another project
    bystanders: tuple[Record, ...]

    @property
    def subject(self) -> tuple[Record, ...]:
        """All records of the subject."""
        return (self.passport, self.allergy, self.abroad)


PEOPLE: Final = People(
    passport=record_of(S1, "passport", "f-1"),
    allergy=record_of(S1, "allergy", "f-2", text="Walnuts are not good for me."),
    abroad=record_of(replace(S1, project="p-2"), "passport", "f-3", text="I travel with the red one."),
    bystanders=(
        record_of(replace(S1, user="s-10"), "passport", "f-4", text="Mine begins with C."),  # the same prefix
        record_of(replace(S1, user="s-2"), "passport", "f-5"),  # the same value
        record_of(replace(S1, user="S-1"), "passport", "f-6"),  # another case
        record_of(replace(S1, tenant="t-2"), "passport", "f-1"),  # the same ids in another tenant
        record_of(replace(S1, tenant="t-2"), "allergy", "f-2"),
    ),
)
