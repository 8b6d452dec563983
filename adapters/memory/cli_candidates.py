"""`expunge memory candidate`: propose a fact, see what waits, and accept or reject it, from a shell."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from adapters.memory.candidates import Candidate
from adapters.memory.candidates.store import LIMIT
from adapters.memory.shell import DerivedFrom, Json, Kind, Project, Source, State, Tenant, User, opened, register, say
from adapters.memory.sources import SourceKind
from orchestrator import Scope

app = typer.Typer(help="Facts that a program proposes; none holds before it is accepted.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="Id of the candidate.", show_default=False)]


@app.command()
def propose(
    key: Annotated[str, typer.Argument(help="Key of the fact.", show_default=False)],
    value: Annotated[str, typer.Argument(help="Text of the fact.", show_default=False)],
    source: Source,
    by: Annotated[str, typer.Option(help="Name of the program that proposes it.", show_default=False)],
    tenant: Tenant,
    user: User,
    project: Project = None,
    kind: Kind = SourceKind.USER_MESSAGE,
    derived_from: DerivedFrom = None,
    expires: Annotated[float | None, typer.Option(help="End of validity in seconds since 1970.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Keep what a program has read out of a source; no fact changes. The same again is the same candidate.

    Example: expunge memory candidate propose language en --source chat/turn-7 --by extractor-7 --tenant acme --user ann
    """
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        register(adapter.store, scope, source, kind, derived_from)
        end = math.inf if expires is None else expires
        candidate = adapter.candidates.propose(scope, key, value, source, proposed_by=by, expires=end)
    say(_told(candidate), [f"{candidate.state} {candidate.id}"], as_json=as_json)


@app.command(name="list")
def list_(
    tenant: Tenant,
    user: User,
    project: Project = None,
    limit: Annotated[int, typer.Option(help="At most so many.")] = LIMIT,
    after: Annotated[str | None, typer.Option(help="Go on behind this candidate: the id that `next` named.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Show what waits for a decision in a scope.

    Example: expunge memory candidate list --tenant acme --user ann --project trips
    """
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        found = adapter.candidates.pending(scope, limit=limit, after=after)
        more = bool(found) and bool(adapter.candidates.pending(scope, limit=1, after=found[-1].id))
    following = found[-1].id if more else None
    lines = [f"{c.id}: {c.key} = {c.value} (from {c.source}, by {c.proposed_by})" for c in found]
    lines += [] if following is None else [f"more: --after {following}"]
    answer: dict[str, object] = {"candidates": [_told(candidate) for candidate in found], "next": following}
    say(answer, lines or ["no candidates"], as_json=as_json)


@app.command()
def accept(
    candidate: Id,
    source: Annotated[str, typer.Option(help="Message in which the user confirms it.", show_default=False)],
    expected_version: Annotated[
        int, typer.Option(help="Version of the key that was read; 0 where there was none.", show_default=False)
    ],
    tenant: Tenant,
    user: User,
    project: Project = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Make a fact of a candidate that the user has confirmed; a message that is new is registered first.

    Exit 3 where the key is at another version by now: read it again, and ask the user. Rules that accept by
    themselves are part of a program, and have no command.

    Example: expunge memory candidate accept ID --source chat/turn-8 --expected-version 1 --tenant acme --user ann
    """
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        register(adapter.store, scope, source, SourceKind.USER_MESSAGE, None)
        version = adapter.candidates.accept(scope, candidate, source=source, expected_version=expected_version)
        revision = adapter.store.revision(scope)
    answer: dict[str, object] = {"id": candidate, "version": version, "source": source, "revision": revision}
    say(answer, [f"accepted {candidate} as version {version}"], as_json=as_json)


@app.command()
def reject(
    candidate: Id, tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False
) -> None:
    """Blank a candidate for good; the same proposal from the same source does not come back.

    Example: expunge memory candidate reject ID --tenant acme --user ann --project trips
    """
    with opened(state) as adapter:
        adapter.candidates.reject(Scope(tenant=tenant, user=user, project=project), candidate)
    say({"id": candidate, "state": "rejected"}, [f"rejected {candidate}"], as_json=as_json)


def _told(candidate: Candidate) -> dict[str, object]:
    return {
        "id": candidate.id,
        "key": candidate.key,
        "value": candidate.value,
        "source": candidate.source,
        "expires": None if math.isinf(candidate.expires) else candidate.expires,
        "proposed_by": candidate.proposed_by,
        "proposed_at": candidate.proposed_at.isoformat(),
        "state": candidate.state.value,
    }
