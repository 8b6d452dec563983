"""`expunge hold add`, `list` and `release`: while a hold stands, nothing that it covers is changed."""

from __future__ import annotations

import dataclasses
import getpass
from typing import Annotated, Any

import typer

from orchestrator.bootstrap import open_control, state_dir
from orchestrator.cli.file import TenantName, UserName
from orchestrator.cli.options import AsJson, StateDir, Tenant, chosen, show
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.hold import HoldView
from orchestrator.service.hold import HoldRequest, place

app = typer.Typer(help="Legal holds: keep what a law or a dispute needs, from every path that erases.")


@app.command()
def add(
    tenant: TenantName,
    user: UserName,
    reason: Annotated[str, typer.Option(help=f"One of: {', '.join(HoldReason)}.")],
    subject: Annotated[bool, typer.Option("--subject", help="All of the user's data.")] = False,  # noqa: FBT002 - a flag
    memory: Annotated[
        list[str] | None, typer.Option(help="One record, by the source's own handle; may repeat.")
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Case id: [a-z0-9][a-z0-9._/-]*.")] = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Place a hold. It answers `placing`; it is in force when no call that began before can still act."""
    if subject == bool(memory):
        message = "name either --subject or one or more --memory"
        raise InvalidRequest(message, field="subject")
    control = open_control(state_dir(directory))
    try:
        asked = HoldRequest(
            tenant=tenant,
            user=user,
            items=tuple(memory or ()),
            reason=HoldReason(chosen("reason", reason, HoldReason)),
            requested_by=getpass.getuser(),
            reference=reference,
        )
        views = [control.ledger.hold(str(hold)) for hold in place(asked, control.acceptance)]
    finally:
        control.close()
    show({"holds": [_document(view) for view in views]}, [_line(view) for view in views], as_json=as_json)


@app.command("list")
def list_holds(
    tenant: Tenant = None,
    released: Annotated[bool, typer.Option("--released", help="Show released ones too.")] = False,  # noqa: FBT002
    after: Annotated[str | None, typer.Option(help="Go on after this hold: `next` of the last page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Holds on a page.")] = 50,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """List holds, oldest first, page by page, with what was erased before each and what is unknown."""
    control = open_control(state_dir(directory))
    try:
        views = control.ledger.holds(tenant=tenant, released=released, after=after, limit=limit + 1)
    finally:
        control.close()
    page, more = views[:limit], len(views) > limit
    following = page[-1].id if more else None
    lines = [_line(view) for view in page] + ([f"more: --after {following}"] if more else [])
    show({"holds": [_document(view) for view in page], "next": following}, lines, as_json=as_json)


@app.command()
def release(
    hold: Annotated[str, typer.Argument(help="Id of the hold.", metavar="HOLD")],
    tenant: Tenant = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Lift a hold: what it kept waiting goes on by itself."""
    control = open_control(state_dir(directory))
    try:
        by_ref = control.acceptance.ref("requester", getpass.getuser())
        control.ledger.release(hold, by_ref=by_ref, tenant=tenant)
        view = control.ledger.hold(hold)
    finally:
        control.close()
    show(_document(view), [_line(view)], as_json=as_json)


def _document(view: HoldView) -> dict[str, Any]:
    return {**dataclasses.asdict(view), "standing": view.standing}


def _line(view: HoldView) -> str:
    what = "all of the subject" if view.item is None else f"record {view.item}"
    line = f"hold {view.id}: {view.standing}, {what}, {view.reason}"
    if view.erased_before:
        line += f"; erased before it was placed: {view.erased_before}"
    if view.unknown:
        line += f"; calls whose answer was lost, so that what they did is unknown: {view.unknown}"
    return line
