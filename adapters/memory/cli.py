"""`expunge memory`: put, read and forget facts of a scope from a shell."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.sources import SourceKind
from adapters.memory.store import MemoryStore
from orchestrator import ErasureError, InvalidRequest, Refused, Scope

app = typer.Typer(help="Facts of the scoped memory store.", no_args_is_help=True)

EXIT_FAILED: Final = 1
EXIT_INVALID: Final = 2
EXIT_REFUSED: Final = 3
EXIT_NOTHING: Final = 5
NOTHING_FOUND: Final = "nothing_found"

Key = Annotated[str, typer.Argument(help="Key of the fact.", show_default=False)]
Tenant = Annotated[str, typer.Option(help="Tenant.", show_default=False)]
User = Annotated[str, typer.Option(help="User whose fact it is.", show_default=False)]
Project = Annotated[str | None, typer.Option(help="Project; without it, what holds for the user in general.")]
State = Annotated[Path | None, typer.Option("--dir", help="State directory.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@app.command()
def put(
    key: Key,
    value: Annotated[str, typer.Argument(help="Text of the fact.", show_default=False)],
    source: Annotated[str, typer.Option(help="Message, document or event that says so.", show_default=False)],
    tenant: Tenant,
    user: User,
    project: Project = None,
    kind: Annotated[SourceKind, typer.Option(help="What the source is, if it is new.")] = SourceKind.USER_MESSAGE,
    derived_from: Annotated[list[str] | None, typer.Option(help="A source behind a new one; repeatable.")] = None,
    expires: Annotated[float | None, typer.Option(help="End of validity in seconds since 1970.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Store a new version of a fact; a source that is new is registered first."""
    with _store(state) as store:
        scope = Scope(tenant=tenant, user=user, project=project)
        if not store.knows_source(scope, source):
            store.register_source(scope, source, kind=kind, derived_from=derived_from or ())
        version = store.put(
            scope,
            key,
            value,
            source,
            math.inf if expires is None else expires,
            user_statement=kind is SourceKind.USER_MESSAGE,
        )
        answer = {"key": key, "version": version, "source": source, "revision": store.revision(scope)}
    _say(answer, [f"stored {key} version {version}"], as_json=as_json)


@app.command()
def current(tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False) -> None:
    """Show the facts of a scope that hold now."""
    with _store(state) as store:
        scope = Scope(tenant=tenant, user=user, project=project)
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
    _say({"revision": revision, "facts": rows}, lines or ["no facts"], as_json=as_json)


@app.command()
def forget(
    key: Key, tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False
) -> None:
    """Revoke a key in this store alone; copies elsewhere need a deletion job. Exit 5 where there was nothing."""
    with _store(state) as store:
        done = store.forget(Scope(tenant=tenant, user=user, project=project), key)
    answer = {
        "outcome": done.outcome,
        "versions": done.versions,
        "revision": done.revision,
        "outstanding": list(done.outstanding),
    }
    lines = [f"{done.outcome}: {done.versions} versions; copies in other stores stay: `expunge request` reaches them"]
    _say(answer, lines if done.versions else [done.outcome], as_json=as_json)
    if done.outcome == NOTHING_FOUND:
        raise typer.Exit(EXIT_NOTHING)


@contextmanager
def _store(state: Path | None) -> Iterator[MemoryStore]:
    """Open the installed adapter's store; refusals and wrong requests become exit codes."""
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        adapter = cast("MemoryAdapter", open_adapter(state, "memory"))
        try:
            yield adapter.store
        finally:
            adapter.close()
    except Refused as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except InvalidRequest as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_INVALID) from None
    except ErasureError as error:
        typer.echo(f"the memory store cannot be used: {error} Is [adapters.memory] url right? ({error.code})", err=True)
        raise typer.Exit(EXIT_FAILED) from None


def _say(answer: dict[str, object], lines: list[str], *, as_json: bool) -> None:
    for line in [json.dumps(answer, ensure_ascii=False)] if as_json else lines:
        typer.echo(line if as_json else _printable(line))


def _printable(line: str) -> str:
    """Escape what would move the cursor or colour a terminal: a stored text must not write there."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
