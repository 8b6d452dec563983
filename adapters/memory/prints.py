"""Fingerprints of what a job revokes, kept beside the record until it is erased: a repeat gives the same answer.

Principles: they are made while the text is still there, in the transaction that blanks or
hides it. A record of which there are none cannot be looked for in files, and is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import change, columns, insert_new, look_up
from adapters.memory.selection import HANDLE, Handle, exactly
from adapters.memory.tables import KIND, facts, record_prints
from orchestrator import EraseOrder, Fingerprint, Revocation, Target

MOST: Final = 500
"""Records that get fingerprints in one call: a person who is named with more is looked for by reads alone."""
Record: TypeAlias = tuple[str, str, str, int]
"""Tenant, kind, id and version."""
Item: TypeAlias = tuple[str, str, str]
"""Tenant, kind and id: all versions of it."""
_RECORD: Final = columns(tenant=str, kind=str, handle=str, version=int)
_ITEM: Final = columns(tenant=str, kind=str, handle=str)


class Prints(Protocol):
    """What can be looked for of a value."""

    @property
    def rows(self) -> Sequence[Fingerprint]:
        """Give its fingerprints; none where it is too short."""

    @property
    def not_probeable(self) -> Collection[object]:
        """Give the encodings in which the value cannot be looked for."""


class Fingerprinter(Protocol):
    """Makes fingerprints of texts."""

    def of_text(self, text: str) -> Prints:
        """Give those of one text, in every encoding in which it may be stored."""


def keep_facts(connection: sa.Connection, by: Fingerprinter, handles: Collection[Handle]) -> None:
    """Keep the fingerprints of facts that are about to be blanked."""
    rows = look_up(connection, HANDLE, list(islice(sorted(handles), MOST)), _values)
    keep(connection, by, (((row.tenant, KIND, row.fact_id, row.version), row.value) for row in rows))


def keep(connection: sa.Connection, by: Fingerprinter, texts: Iterable[tuple[Record, str | None]]) -> None:
    """Keep the fingerprints of texts, each under the record that it is of.

    None are kept of a text that has them in some encodings alone: in which one its store keeps it, nobody says here.
    """
    made = [(record, by.of_text(text)) for record, text in islice(texts, MOST) if text is not None]
    whole = [(record, prints.rows) for record, prints in made if not prints.not_probeable]
    insert_new(connection, record_prints, [(*record, p.roll, p.mac) for record, rows in whole for p in rows])


def with_prints(
    connection: sa.Connection, orders: Sequence[EraseOrder], answers: Sequence[Revocation]
) -> list[Revocation]:
    """Add to each answer the fingerprints of the targets that it names, and how many of them have none."""
    records = [[_record(o.scope.tenant, t) for t in a.targets] for o, a in zip(orders, answers, strict=True)]
    found: defaultdict[Record, list[Fingerprint]] = defaultdict(list)
    for row in look_up(connection, _RECORD, sorted({record for page in records for record in page}), _prints):
        found[row.tenant, row.kind, row.handle, row.version].append(Fingerprint(row.roll, row.mac))
    return [
        replace(
            answer,
            fingerprints=tuple(dict.fromkeys(print_ for record in page for print_ in found[record])),
            unprobed=sum(1 for record in page if not found[record]),
        )
        for answer, page in zip(answers, records, strict=True)
    ]


def drop(connection: sa.Connection, gone: Collection[Item]) -> None:
    """Take away those of what is erased now: every job that has named it by now has a copy of its own."""
    change(connection, _ITEM, sorted(gone), _no_longer)


def _record(tenant: str, target: Target) -> Record:
    return tenant, target.kind, target.id, target.version


def _values(given: sa.FromClause) -> sa.Select[Any]:
    f = facts.c
    return sa.select(f.tenant, f.fact_id, f.version, f.value).select_from(given.join(facts, exactly(given)))


def _prints(given: sa.FromClause) -> sa.Select[Any]:
    p, g = record_prints.c, given.c
    of = (p.tenant == g.tenant) & (p.kind == g.kind) & (p.handle == g.handle) & (p.version == g.version)
    return sa.select(record_prints).select_from(given.join(record_prints, of))


def _no_longer(given: sa.FromClause) -> sa.Delete:
    p = record_prints.c
    return record_prints.delete().where(sa.tuple_(p.tenant, p.kind, p.handle).in_(sa.select(given)))
