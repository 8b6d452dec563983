"""`expunge memory`: say what a user prefers, ask what holds or held, and build what holds anew, from a shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer

from adapters.memory.preferences import Resolution, State
from adapters.memory.shell import (
    EXIT_NOTHING,
    DerivedFrom,
    Json,
    Kind,
    Project,
    Source,
    Tenant,
    User,
    opened,
    register,
    say,
)
from adapters.memory.shell import State as StateDirectory
from adapters.memory.sources import SourceKind
from orchestrator import InvalidRequest, Scope

_WHO: Final = "--tenant acme --user ann"

Key = Annotated[str, typer.Argument(help="Key of the preference.", show_default=False)]


def prefer(
    key: Key,
    source: Source,
    tenant: Tenant,
    user: User,
    value: Annotated[str | None, typer.Argument(help="What is preferred from now on.", show_default=False)] = None,
    project: Project = None,
    kind: Kind = SourceKind.USER_MESSAGE,
    derived_from: DerivedFrom = None,
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Take the preference back, instead of a value.")] = False,
    state: StateDirectory = None,
    as_json: Json = False,
) -> None:
    """Accept what a user prefers, or takes back; a source that is new is registered first.

    What was said before stays in the log: taking back is not forgetting, which `expunge request` does.
    """
    with opened(state) as adapter:
        if (value is None) is not delete:
            message = "give either a value or --delete"
            raise InvalidRequest(message, field="value")
        scope, stated = Scope(tenant=tenant, user=user, project=project), kind is SourceKind.USER_MESSAGE
        register(adapter.store, scope, source, kind, derived_from)
        event = adapter.preferences.prefer(scope, key, value, source, user_statement=stated)
        revision = adapter.store.revision(scope)
    answer: dict[str, object] = {
        "id": event.id,
        "key": key,
        "sequence": event.sequence,
        "operation": event.operation.value,
        "source": source,
        "revision": revision,
    }
    say(answer, [f"{event.operation.value} {key} at {event.sequence}"], as_json=as_json)


def resolve(
    key: Key,
    tenant: Tenant,
    user: User,
    project: Annotated[
        str | None, typer.Option(help="Project that asks; what it does not say holds in general.")
    ] = None,
    as_of: Annotated[
        int | None, typer.Option(help="Sequence up to which the log is read; without it, all of it.")
    ] = None,
    *,
    state: StateDirectory = None,
    as_json: Json = False,
) -> None:
    """Tell what a user prefers: a value, deleted, erased or unset. Exit 5 where it was never said."""
    with opened(state) as adapter:
        found = adapter.preferences.resolve(Scope(tenant=tenant, user=user, project=project), key, as_of)
    answer: dict[str, object] = {
        "key": key,
        "state": found.state.value,
        "value": found.value,
        "sequence": found.sequence,
        "resolved_scope": found.resolved_scope,
        "marker": found.marker,
    }
    say(answer, [_line(key, found)], as_json=as_json)
    if found.state is State.UNSET:
        raise typer.Exit(EXIT_NOTHING)


def replay(
    tenant: Tenant, user: User, project: Project = None, *, state: StateDirectory = None, as_json: Json = False
) -> None:
    """Build what holds in a scope anew from the log, and tell how many keys changed: 0 where all was right."""
    with opened(state) as adapter:
        changed = adapter.preferences.replay(Scope(tenant=tenant, user=user, project=project))
    say({"changed": changed}, [f"keys that changed: {changed}"], as_json=as_json)


COMMANDS: Final[Mapping[Callable[..., None], str]] = {
    prefer: f"Example: expunge memory prefer language English --source chat/turn-6 {_WHO} --project reports",
    resolve: f"Example: expunge memory resolve language {_WHO} --project reports --as-of 40",
    replay: f"Example: expunge memory replay {_WHO}",
}
"""What each of these is registered with."""


def _line(key: str, found: Resolution) -> str:
    passed = "" if found.marker is None else f"; deleted for the project at {found.marker}"
    if found.state is State.UNSET:
        return f"{key} is unset{passed}"
    said = f"= {found.value}" if found.state is State.VALUE else f"is {found.state.value}"
    return f"{key} {said} (at {found.sequence}, {found.resolved_scope}{passed})"
