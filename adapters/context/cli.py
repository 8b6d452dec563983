"""`expunge memory why`: what decides a preference, and where it got lost on its way into an input."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer

from adapters.context.diagnose import Diagnosis, Stage
from adapters.context.inspection import Inspection
from adapters.context.inspector import Inspector
from adapters.context.stale import Stale
from adapters.memory.session import Session
from adapters.memory.shell import EXIT_FAILED, EXIT_NOTHING, Json, State, Tenant, User, opened, say

EXAMPLE: Final = "Example: expunge memory why answer_detail --tenant acme --user ann --project trips --as-of 22"


def why(
    key: Annotated[str, typer.Argument(help="Key of the preference.", show_default=False)],
    tenant: Tenant,
    user: User,
    project: Annotated[str | None, typer.Option(help="Project; without it, what holds in general.")] = None,
    as_of: Annotated[int | None, typer.Option(help="Sequence of the last event that counts; else the latest.")] = None,
    name: Annotated[str | None, typer.Option("--input", help="Name of an input that it should be in.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Show which event decides a preference, and the first check that fails on its way from the log into an input.

    Checked in order: captured, interpreted, applied; with --input also selected and included, and what of
    the input has changed since. Exit 1 where a check fails, 5 where nothing was ever said of the key.
    """
    with opened(state) as adapter:
        inspector = Inspector(adapter, Session(tenant=tenant, user=user, is_member=_vouched))
        told = inspector.diagnose(key, project=project, as_of=as_of, name=name)
        changed = () if name is None else inspector.stale(name, project=project)
    say(_told(told, changed), _lines(told, changed), as_json=as_json)
    if told.failed is not None:
        raise typer.Exit(EXIT_NOTHING if told.failed is Stage.CAPTURED else EXIT_FAILED)


def _vouched(_project: str) -> bool:
    return True  # whoever has this shell vouches for whom it is about


def _told(told: Diagnosis, changed: tuple[Stale, ...]) -> dict[str, object]:
    return {
        **asdict(told.known),
        "failed": told.failed,
        "failure": None if told.failed is None else told.failed.failure,
        "stale": [asdict(one) for one in changed],
    }


def _lines(told: Diagnosis, changed: tuple[Stale, ...]) -> list[str]:
    checked = "every check holds" if told.failed is None else f"not {told.failed.value}: {told.failed.failure}"
    return [_known(told.known), checked, *(_stale(one) for one in changed)]


def _known(known: Inspection) -> str:
    value = known.state.value if known.value is None else known.value
    event = "no event" if known.sequence is None else f"event {known.sequence}"
    before = "".join(f", supersedes {sequence}" for sequence in known.superseded[-1:])
    return f"{known.key} = {value} ({event}, {known.scope}, as of {known.as_of}{before})"


def _stale(one: Stale) -> str:
    now = "nothing" if one.now is None else str(one.now)
    return f"stale: {one.kind} {one.key or one.id} was {one.in_input or 'nothing'}, is {now}"
