"""`expunge hold add`, `list` and `release`: while a hold stands, nothing that it covers is changed."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import structlog
import typer

from orchestrator.cli.options import (
    REFERENCE,
    AsJson,
    StateDir,
    Tenant,
    TenantName,
    UserName,
    chosen,
    given_id,
    opened,
    requester,
    show,
)
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.hold import HoldView
from orchestrator.service.hold import HoldRequest, place

app = typer.Typer(
    help="Legal holds: keep what a law or a dispute needs, from every path that erases.", no_args_is_help=True
)


@app.command(epilog="Example: expunge hold add --subject --tenant acme --user ann --reason litigation")
def add(
    tenant: TenantName,
    user: UserName,
    reason: Annotated[str, typer.Option(help=f"One of: {', '.join(HoldReason)}.")],
    subject: Annotated[bool, typer.Option("--subject", help="All of the user's data.")] = False,  # noqa: FBT002 - a flag
    memory: Annotated[
        list[str] | None,
        typer.Option(help="One record, by the source's own handle; may repeat. Nobody looks whether there is one."),
    ] = None,
    reference: Annotated[str | None, typer.Option(help=REFERENCE)] = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Place a hold. It answers `placing`; it is in force when no call that began before can still act."""
    if subject == bool(memory):
        message = "name either --subject or one or more --memory"
        raise InvalidRequest(message, field="subject")
    with opened(directory) as control:
        asked = HoldRequest(
            tenant=tenant,
            user=user,
            items=tuple(memory or ()),
            reason=HoldReason(chosen("reason", reason, HoldReason)),
            requested_by=requester(),
            reference=reference,
        )
        views = [control.ledger.hold(str(hold)) for hold in place(asked, control.acceptance)]
    for view in views:
        structlog.get_logger().info("hold.placed", hold_id=view.id, reason=view.reason)
    unseen = ["whether there is such a record is not looked at: `hold list` names the ids"] if memory else []
    show({"holds": [_document(view) for view in views]}, [*map(_line, views), *unseen], as_json=as_json)


@app.command("list", epilog="Example: expunge hold list --tenant acme --released")
def list_holds(
    tenant: Tenant = None,
    released: Annotated[bool, typer.Option("--released", help="Show released ones too.")] = False,  # noqa: FBT002
    after: Annotated[str | None, typer.Option(help="Go on after this hold: `next` of the last page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Holds on a page.")] = 50,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """List holds, oldest first, page by page, with what was erased before each and what is unknown."""
    after = given_id("after", after)
    with opened(directory) as control:
        views = control.ledger.holds(tenant=tenant, released=released, after=after, limit=limit + 1)
    page, more = views[:limit], len(views) > limit
    following = page[-1].id if more else None
    lines = [_line(view) for view in page] + ([f"more: --after {following}"] if more else [])
    show({"holds": [_document(view) for view in page], "next": following}, lines or ["no hold stands"], as_json=as_json)


@app.command(epilog="Example: expunge hold release HOLD")
def release(
    hold: Annotated[str, typer.Argument(help="Id of the hold.", metavar="HOLD")],
    tenant: Tenant = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Lift a hold: what it kept waiting goes on by itself."""
    with opened(directory) as control:
        by_ref = control.acceptance.ref("requester", requester())
        control.ledger.release(hold, by_ref=by_ref, tenant=tenant)
        view = control.ledger.hold(hold)
    structlog.get_logger().info("hold.released", hold_id=view.id)
    show(_document(view), [_line(view)], as_json=as_json)


def _document(view: HoldView) -> dict[str, Any]:
    return {**dataclasses.asdict(view), "standing": view.standing}


def _line(view: HoldView) -> str:
    what = "all of the subject" if view.item is None else f"record {view.item}"
    line = f"hold {view.id}: {view.standing}, {what}, {view.reason}, tenant {view.tenant}"
    if view.erased_before:
        line += f"; erased before it was placed: {view.erased_before}"
    if view.unknown:
        line += f"; calls whose answer was lost, so that what they did is unknown: {view.unknown}"
    return line
