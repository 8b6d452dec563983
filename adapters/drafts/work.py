"""What each step works with, and how what it made is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias
from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import dependencies, lineage
from adapters.drafts.gate import pass_gate
from adapters.drafts.inputs import MAX_TEXT
from adapters.drafts.records import drafts_among, facts_among
from adapters.drafts.step import KINDS, Step
from adapters.drafts.tables import drafts
from adapters.drafts.view import made, target_of
from adapters.memory.batch import Found
from adapters.memory.facts import check_text, scope_of
from orchestrator import Gate, Target

Writer: TypeAlias = Callable[[str], str]
"""Makes a report of what was collected, lines of `key: value` and reports that are built on, and of what only the draft
was said to use. Empty where there is nothing. It is called outside of any transaction, and once more after a crash."""
_BEFORE: Final = {Step.DRAFT: Step.COLLECT, Step.PUBLISH: Step.DRAFT}


def compose(collected: str) -> str:
    """Write the plainest report: what was collected, under a heading."""
    return f"Report\n\n{collected or 'Nothing is known.'}"


def given(connection: sa.Connection, job: Found, step: Step) -> str:
    """Read what a step works with: what the step before it has made, and the facts and reports that are its own."""
    used, before = _own(connection, job, step), _before(connection, job, step)
    lines = [f"{fact.key}: {fact.value}" for fact in facts_among(connection, job.tenant, used)]
    texts = [*lines, *(row.text for row in drafts_among(connection, job.tenant, used))]
    return "\n".join(texts if before is None else [text for text in (before.text, *texts) if text])


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


def _own(connection: sa.Connection, job: Found, step: Step) -> Collection[Target]:
    """Give what a step reads beside what the one before it has made: nothing that this one has read already."""
    said = dependencies.read(connection, job.tenant, job.handle)
    whole = lineage.read(connection, job.tenant, [job.handle]).get(job.handle, [])
    if step is Step.COLLECT:
        return said.get(step, whole)
    return said.get(step, set()) - set(said.get(Step.COLLECT, whole))


def _behind(connection: sa.Connection, job: Found, step: Step) -> Collection[Target]:
    """Give all that a step's text is made from: what is used, and what that was made from."""
    used, before = set(_own(connection, job, step)), _before(connection, job, step)
    if before is not None:
        used.add(target_of(before))
    further = lineage.read(connection, job.tenant, [target.id for target in used if target.kind in KINDS])
    return {*used, *(target for some in further.values() for target in some)}


def _before(connection: sa.Connection, job: Found, step: Step) -> Found | None:
    """Give what the step before has made; None for the first one."""
    if step is Step.COLLECT:
        return None
    return next(row for row in made(connection, job) if row.step == _BEFORE[step].value)
