"""An input as a row of the table of drafts: of no draft job, under a name of its own, with what it was made from.

Principles: what is kept is made from records alone and names them, so deletion jobs find it. What
the current task asks for names none, and is therefore not kept: of it there is a keyed hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from adapters.context.assembled import Assembled, Item
from adapters.drafts import lineage
from adapters.drafts.step import INPUT
from adapters.drafts.tables import drafts
from adapters.memory.facts import place_of
from orchestrator import Gate, Scope, Target


def write(connection: sa.Connection, gate: Gate, made: Assembled, asked: str) -> None:
    """Write an input down with the records that it was made from. `asked` is a keyed hash of what was asked for."""
    handle = str(uuid4())
    row = {
        **place_of(made.scope),
        "handle": handle,
        "job": _job(gate, made.scope, made.name),
        "step": INPUT,
        "position": made.as_of,
        "text": _text(made, asked),
    }
    connection.execute(drafts.insert().values(row))
    lineage.write(connection, made.scope.tenant, handle, [item.target for item in made.items])


def read(
    connection: sa.Connection, gate: Gate, scope: Scope, name: str, constraints: Mapping[str, str]
) -> tuple[Assembled, str] | None:
    """Give an input of exactly this scope and what it was asked for by; None where there is none of this name."""
    d, place = drafts.c, place_of(scope)
    here = (d.tenant == scope.tenant) & (d.user_id == scope.user) & (d.project == place["project"])
    named = (d.job == _job(gate, scope, name)) & (d.step == INPUT)
    text = connection.scalar(sa.select(d.text).where(here, named))
    if text is None:
        return None
    told: dict[str, Any] = json.loads(text)
    asked = str(told.pop("asked"))
    told["items"] = tuple(Item(**{**item, "target": Target(**item["target"])}) for item in told["items"])
    for field in ("omitted", "outranked"):
        told[field] = tuple(Target(**each) for each in told[field])
    return Assembled(scope=scope, name=name, constraints=dict(constraints), **told), asked


def _job(gate: Gate, scope: Scope, name: str) -> str:
    """Name an input without saying how its caller named it."""
    return gate.handle(scope.tenant, "input", scope.canonical(), name)


def _text(made: Assembled, asked: str) -> str:
    told = {field: value for field, value in asdict(made).items() if field not in {"scope", "name", "constraints"}}
    return json.dumps({**told, "asked": asked}, ensure_ascii=False)
