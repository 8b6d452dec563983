"""What each step works with, and how what it made is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias
from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.gate import pass_gate
from adapters.drafts.inputs import MAX_TEXT, check_text
from adapters.drafts.records import drafts_among, facts_among
from adapters.drafts.step import KINDS, Step
from adapters.drafts.tables import drafts
from adapters.drafts.view import made, target_of
from adapters.memory.batch import Found
from adapters.memory.facts import scope_of
from orchestrator import Gate, Target

Writer: TypeAlias = Callable[[str], str]
"""Makes a report of what was collected: lines of `key: value`, and reports that are built on. Empty where there is
nothing. It is called outside of any transaction, and once more after a crash."""
_BEFORE: Final = {Step.DRAFT: Step.COLLECT, Step.PUBLISH: Step.DRAFT}


def compose(collected: str) -> str:
    """Write the plainest report: what was collected, under a heading."""
    return f"Report\n\n{collected or 'Nothing is known.'}"


def given(connection: sa.Connection, job: Found, step: Step) -> str:
    """Read what a step works with: facts and reports, or what the step before it has made."""
    if step is not Step.COLLECT:
        return str(_of(connection, job, _BEFORE[step]).text)
    used = _direct(connection, job)
    lines = [f"{fact.key}: {fact.value}" for fact in facts_among(connection, job.tenant, used)]
    return "\n".join([*lines, *(row.text for row in drafts_among(connection, job.tenant, used))])


def do(step: Step, given: str, writer: Writer) -> str:
    """Do a step; raises `InvalidRequest` for what a writer may not give."""
    if step is not Step.DRAFT:
        return given
    text = writer(given)
    check_text("text", text, MAX_TEXT)
    return text


def keep(connection: sa.Connection, gate: Gate, job: Found, step: Step, text: str) -> None:
    """Write down what a step has made and from what; raises `GateRefused` for a text that was forgotten."""
    scope, handle = scope_of(job.tenant, job.user_id, job.project), str(uuid4())
    used = _behind(connection, job, step)
    if step is not Step.COLLECT:
        pass_gate(connection, gate, scope, handle, text, facts_among(connection, job.tenant, used))
    place = {name: getattr(job, name) for name in ("tenant", "user_id", "project", "position")}
    row = {**place, "handle": handle, "job": job.handle, "step": step.value, "text": text}
    connection.execute(drafts.insert().values(row))
    lineage.write(connection, job.tenant, handle, used)


def _direct(connection: sa.Connection, job: Found) -> list[Target]:
    return lineage.read(connection, job.tenant, [job.handle]).get(job.handle, [])


def _behind(connection: sa.Connection, job: Found, step: Step) -> Collection[Target]:
    """Give all that a step's text is made from: what is used, and what that was made from."""
    used = _direct(connection, job) if step is Step.COLLECT else [target_of(_of(connection, job, _BEFORE[step]))]
    further = lineage.read(connection, job.tenant, [target.id for target in used if target.kind in KINDS])
    return {*used, *(target for some in further.values() for target in some)}


def _of(connection: sa.Connection, job: Found, step: Step) -> Found:
    return next(row for row in made(connection, job) if row.step == step.value)
