"""`expunge memory`: put, read and forget facts of a scope from a shell."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from adapters.context import cli as of_context
from adapters.drafts import cli as of_drafts
from adapters.drafts import cli_approvals as of_approvals
from adapters.memory import cli_candidates, cli_chains, cli_grant, cli_preferences
from adapters.memory.shell import (
    EXIT_NOTHING,
    DerivedFrom,
    Json,
    Kind,
    Project,
    Source,
    State,
    Tenant,
    User,
    opened,
    register,
    say,
)
from adapters.memory.sources import SourceKind
from orchestrator import Scope

app = typer.Typer(help="Facts and memories of the memory store.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(help="Key of the fact.", show_default=False)]


@app.command()
def put(
    key: Key,
    value: Annotated[str, typer.Argument(help="Text of the fact.", show_default=False)],
    source: Source,
    tenant: Tenant,
    user: User,
    project: Project = None,
    kind: Kind = SourceKind.USER_MESSAGE,
    derived_from: DerivedFrom = None,
    expires: Annotated[float | None, typer.Option(help="End of validity in seconds since 1970.")] = None,
    expected_version: Annotated[
        int | None, typer.Option(help="Only if the key is still at this version, or 0: only if there is none.")
    ] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Store a new version of a fact; a source that is new is registered first.

    Exit 3, with the version and the state of the key, where it is not at the expected version.

    Example: expunge memory put passport "P1234567" --source chat/turn-6 --tenant acme --user ann --project trips
    """
    with opened(state) as adapter:
        store, scope = adapter.store, Scope(tenant=tenant, user=user, project=project)
        register(store, scope, source, kind, derived_from)
        end, stated = math.inf if expires is None else expires, kind is SourceKind.USER_MESSAGE
        if expected_version is None:
            version = store.put(scope, key, value, source, end, user_statement=stated)
        else:
            version = store.replace(
                scope, key, value, source, expected_version=expected_version, expires=end, user_statement=stated
            )
        answer = {"key": key, "version": version, "source": source, "revision": store.revision(scope)}
    say(answer, [f"stored {key} version {version}"], as_json=as_json)


@app.command()
def current(tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False) -> None:
    """Show the facts of a scope that hold now.

    Example: expunge memory current --tenant acme --user ann --project trips --json
    """
    with opened(state) as adapter:
        store, scope = adapter.store, Scope(tenant=tenant, user=user, project=project)
        facts, revision = store.current(scope), store.revision(scope)
    rows = [
        {
            "id": fact.id,
            "key": fact.key,
            "version": fact.version,
            "value": fact.value,
            "source": fact.source,
            "expires": None if math.isinf(fact.expires) else fact.expires,
        }
        for fact in facts
    ]
    lines = [f"{fact.key} = {fact.value} (version {fact.version}, from {fact.source})" for fact in facts]
    say({"revision": revision, "facts": rows}, lines or ["no facts"], as_json=as_json)


@app.command()
def forget(
    key: Key,
    tenant: Tenant,
    user: User,
    project: Annotated[str | None, typer.Option(help="Project; without it, every project of the user.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Revoke a key in this store alone; copies elsewhere need a deletion job. Exit 5 where there was nothing.

    Example: expunge memory forget passport --tenant acme --user ann --project trips
    """
    with opened(state) as adapter:
        done = adapter.store.forget(Scope(tenant=tenant, user=user, project=project), key)
    answer = {
        "outcome": done.outcome,
        "versions": done.versions,
        "revision": done.revision,
        "outstanding": list(done.outstanding),
    }
    versions = "1 version" if done.versions == 1 else f"{done.versions} versions"
    lines = [f"{done.outcome}: {versions}; copies in other stores stay: `expunge request` reaches them"]
    say(answer, lines if done.versions else [done.outcome], as_json=as_json)
    if not done.versions:
        raise typer.Exit(EXIT_NOTHING)


for command in (cli_chains.remember, cli_chains.correct, cli_chains.history, cli_chains.recall):
    app.command()(command)
for of_preferences, example in cli_preferences.COMMANDS.items():
    app.command(epilog=example)(of_preferences)
for of_a_draft, example in of_drafts.COMMANDS.items():
    app.command(epilog=example)(of_a_draft)
app.add_typer(cli_candidates.app, name="candidate")
app.add_typer(of_approvals.app, name="approve")
app.command(epilog=of_context.EXAMPLE)(of_context.why)
app.command(epilog=cli_grant.EXAMPLE)(cli_grant.grant)
