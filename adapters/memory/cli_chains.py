"""`expunge memory`: remember, correct and recall memories from a shell; forgetting one is a job's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from adapters.memory.chains import Level, TaskScope
from adapters.memory.chains.reading import LIMIT
from adapters.memory.shell import DerivedFrom, Json, Kind, Source, State, Tenant, User, opened, register, say
from adapters.memory.sources import SourceKind
from orchestrator import Scope

MemoryId = Annotated[int, typer.Argument(help="Id of any version of the memory.", show_default=False)]
Text = Annotated[str, typer.Argument(help="What is remembered.", show_default=False)]
Task = Annotated[str, typer.Option(help="Task in which it is said; jobs call it the project.", show_default=False)]
Days = Annotated[int | None, typer.Option("--ttl-days", help="Days after which it expires; without them, never.")]


def remember(
    text: Text,
    source: Source,
    tenant: Tenant,
    user: User,
    task: Task,
    level: Annotated[
        Level, typer.Option(help="Seen from every task of the user, or from this one alone.")
    ] = Level.TASK,
    ttl_days: Days = None,
    kind: Kind = SourceKind.USER_MESSAGE,
    derived_from: DerivedFrom = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Store a memory; a source that is new is registered first. Its id is what holds and `--memory` name.

    Example: expunge memory remember "Sits at the aisle." --source chat/turn-6 --tenant acme --user ann --task trips
    """
    with opened(state) as adapter:
        scope, stated = TaskScope(user, task, tenant), kind is SourceKind.USER_MESSAGE
        register(adapter.store, _place(scope), source, kind, derived_from)
        memory_id = adapter.chains.remember(scope, level, text, source, ttl_days, user_statement=stated)
    say({"id": memory_id, "chain": memory_id, "source": source}, [f"remembered {memory_id}"], as_json=as_json)


def correct(
    memory_id: Annotated[int, typer.Argument(help="Id of the newest version.", show_default=False)],
    text: Text,
    source: Source,
    tenant: Tenant,
    user: User,
    task: Task,
    ttl_days: Days = None,
    kind: Kind = SourceKind.USER_MESSAGE,
    derived_from: DerivedFrom = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Put a new version after the newest of a memory; the time to live is not inherited.

    Example: expunge memory correct 7 "Sits at the window." --source chat/turn-9 --tenant acme --user ann --task trips
    """
    with opened(state) as adapter:
        scope, stated = TaskScope(user, task, tenant), kind is SourceKind.USER_MESSAGE
        register(adapter.store, _place(scope), source, kind, derived_from)
        corrected = adapter.chains.correct(scope, memory_id, text, source, ttl_days, user_statement=stated)
        chain = adapter.chains.history(scope, corrected)[0].id
    answer: dict[str, object] = {"id": corrected, "chain": chain, "supersedes": memory_id, "source": source}
    say(answer, [f"corrected {memory_id} by {corrected}; the chain is {chain}"], as_json=as_json)


def history(
    memory_id: MemoryId, tenant: Tenant, user: User, task: Task, *, state: State = None, as_json: Json = False
) -> None:
    """Show all versions of a memory, oldest first.

    Example: expunge memory history 7 --tenant acme --user ann --task trips
    """
    with opened(state) as adapter:
        versions = adapter.chains.history(TaskScope(user, task, tenant), memory_id)
    rows = [
        {
            "id": version.id,
            "text": version.text,
            "source": version.source,
            "created_at": _time(version.created_at),
            "supersedes": version.supersedes,
        }
        for version in versions
    ]
    lines = [f"{v.id}: {v.text} (from {v.source})" for v in versions]
    say({"chain": versions[0].id, "versions": rows}, lines, as_json=as_json)


def recall(
    question: Annotated[str, typer.Argument(help="Words to look for.", show_default=False)],
    tenant: Tenant,
    user: User,
    task: Task,
    limit: Annotated[int, typer.Option(help="At most so many.")] = LIMIT,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Show the memories that share words with a question, best first.

    Example: expunge memory recall "which seat" --tenant acme --user ann --task trips
    """
    with opened(state) as adapter:
        found = adapter.chains.recall(TaskScope(user, task, tenant), question, limit)
    rows = [
        {
            "id": memory.id,
            "level": memory.level.value,
            "text": memory.text,
            "source": memory.source,
            "supersedes": memory.supersedes,
            "expires_at": _time(memory.expires_at),
            "score": memory.score,
        }
        for memory in found
    ]
    lines = [f"{m.id}: {m.text} (score {m.score}, from {m.source})" for m in found]
    say({"memories": rows}, lines or ["no memories"], as_json=as_json)


def _place(scope: TaskScope) -> Scope:
    return Scope(tenant=scope.tenant, user=scope.user, project=scope.task)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
