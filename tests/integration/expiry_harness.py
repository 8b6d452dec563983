"""What has an end, in a deployment whose clock a test sets, and the look for what has expired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.memory.chains import TaskScope
from orchestrator import GateRefused, Refusal, Target
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.service.expire import look
from tests.integration.jobs_harness import ANNA, Deployment, deployment, scope_of

__all__ = ["deployment"]

START = datetime(2026, 10, 20, 9, 1, tzinfo=UTC)
EXPIRY = datetime(2026, 10, 27, 9, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BOOKING, TURN_5 = "The Lisbon hotel booking code is 4F7Q.", "trip-planning/turn-5"
AT_WORK = replace(ANNA, task="work")
ERASED, NOTHING = (JobState.COMPLETED, Result.ERASED), (JobState.COMPLETED, Result.NOTHING_FOUND)


def book(
    made: Deployment,
    who: TaskScope = ANNA,
    text: str = BOOKING,
    source: str = TURN_5,
    *,
    level: str = "task",
    ttl_days: int | None = 7,
) -> int:
    """Let a memory be told that expires, and the cache answer from it."""
    scope = scope_of(who)
    name = f"{who.user}/{source}"
    if not made.memory.store.knows_source(scope, name):
        made.memory.store.register_source(scope, name)
    memory = made.memory.chains.remember(who, level, text, name, ttl_days)
    answer(made, who, text, [Target(kind="memory", id=str(memory), version=memory)])
    return memory


def answer(made: Deployment, who: TaskScope, question: str, made_from: Sequence[Target]) -> None:
    scope = scope_of(who)
    revision = max(made.memory.store.revision(s) for s in (scope, replace(scope, project=None)))
    assert made.cache.answers.put(scope, question, "so it is", made_from, revision)


def answered(made: Deployment, who: TaskScope, question: str) -> bool:
    return made.cache.answers.get(scope_of(who), question) is not None


def sweep(made: Deployment) -> list[str]:
    return [str(job) for job in look(made.memory, made.control.acceptance)]


def refused(made: Deployment, text: str, source: str) -> Refusal | None:
    try:
        made.memory.chains.remember(ANNA, "task", text, source)
    except GateRefused as error:
        return error.refusal
    return None


@pytest.fixture
def started(deployment: Deployment) -> Deployment:
    deployment.clock.at = START
    return deployment
