"""`expunge memory approve`: actions about a report that wait for somebody's word.

Sending one is no command: that is for the application whose tool it is, by `DraftsAdapter.gateway`.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from adapters.drafts.approvals.state import Answer, ApprovalState
from adapters.drafts.approvals.view import ApprovalView
from adapters.drafts.shell import opened
from adapters.memory.shell import EXIT_REFUSED, Json, Project, State, Tenant, User, say
from orchestrator import Scope

app = typer.Typer(
    help="Actions about a report that wait for approval; the application sends them.", no_args_is_help=True
)

_WHO: Final = "--tenant acme --user ann --project trips"
Approval = Annotated[str, typer.Argument(help="Id of the approval; used once.", show_default=False)]


@app.command(epilog=f"Example: expunge memory approve request mail-1 --action send-mail --report report-1 {_WHO}")
def request(
    approval: Approval,
    action: Annotated[str, typer.Option(help="What is to be done, by the name that its tool knows.")],
    report: Annotated[str, typer.Option(help="Id of the draft job whose report is to be sent.")],
    tenant: Tenant,
    user: User,
    project: Project = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Ask for an action about a report that is current. Whatever changes in the scope afterwards, it is not done."""
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        told = adapter.approvals(_vouched).request(scope, approval, action, report=report)
    say(_told(told), [_line(told)], as_json=as_json)


@app.command("list", epilog=f"Example: expunge memory approve list {_WHO}")
def list_approvals(
    tenant: Tenant,
    user: User,
    project: Project = None,
    after: Annotated[str | None, typer.Option(help="Go on after this approval: `next` of the last page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Approvals on a page.")] = 50,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Show the approvals of a scope page by page, with what will be sent where it can still be decided."""
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        rows = adapter.approvals(_vouched).list(scope, after=after, limit=limit + 1)
    page, more = rows[:limit], len(rows) > limit
    following = page[-1].name if more else None
    lines = [line for told in page for line in (_line(told), *_payload(told))]
    if more:
        lines.append(f"more: --after {following}")
    answer: dict[str, object] = {"approvals": [_told(told) for told in page], "next": following}
    say(answer, lines or ["no approvals"], as_json=as_json)


@app.command(epilog=f"Example: expunge memory approve decide mail-1 approve {_WHO}")
def decide(
    approval: Approval,
    answer: Annotated[Answer, typer.Argument(help="What is decided.", show_default=False)],
    tenant: Tenant,
    user: User,
    project: Project = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Approve or refuse an action. Exit 3 where the memory has changed since it was asked for: then it is void."""
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        told = adapter.approvals(_vouched).decide(scope, approval, answer)
    say(_told(told), [_line(told)], as_json=as_json)


@app.command(epilog=f"Example: expunge memory approve cancel mail-1 {_WHO}")
def cancel(
    approval: Approval,
    tenant: Tenant,
    user: User,
    project: Project = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Let an action that waits go no further; nothing is erased. Exit 3 where it was refused or sent before."""
    with opened(state) as adapter:
        told = adapter.approvals(_vouched).cancel(Scope(tenant=tenant, user=user, project=project), approval)
    answer: dict[str, object] = {"approval": approval, "state": told.state, "outstanding": list(told.outstanding)}
    say(answer, [f"{approval}: {told.state}{_left(told.outstanding)}"], as_json=as_json)
    if told.state != ApprovalState.VOID.value:
        raise typer.Exit(EXIT_REFUSED)


@app.command(epilog=f"Example: expunge memory approve receipt OPERATION {_WHO}")
def receipt(
    operation: Annotated[str, typer.Argument(help="Operation key, as the list shows it.", show_default=False)],
    tenant: Tenant,
    user: User,
    project: Project = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Show the receipt of an operation, whatever was forgotten since; nothing of what was sent is read."""
    with opened(state) as adapter:
        told = adapter.approvals(_vouched).receipt(Scope(tenant=tenant, user=user, project=project), operation)
    answer: dict[str, object] = {"operation_key": told.operation_key, "digest": told.digest, "receipt": told.receipt}
    say(answer, [f"receipt: {told.receipt or 'none'}", f"digest: {told.digest}"], as_json=as_json)


def _vouched(_scope: Scope) -> bool:
    """Take whoever works on the state directory at their word, as every command does."""
    return True


def _line(told: ApprovalView) -> str:
    said = f"{told.name}: {told.action} {told.state.value}, operation {told.operation_key}"
    return said + _left(told.outstanding)


def _left(outstanding: tuple[str, ...]) -> str:
    return f"; outstanding: {', '.join(outstanding)}" if outstanding else ""


def _payload(told: ApprovalView) -> list[str]:
    return [] if told.payload is None else [f"  {told.payload}"]


def _told(told: ApprovalView) -> dict[str, object]:
    return {
        "approval": told.name,
        "action": told.action,
        "state": told.state.value,
        "memory_rev": told.memory_rev,
        "memory_expires": told.memory_expires,
        "digest": told.digest,
        "operation_key": told.operation_key,
        "receipt": told.receipt,
        "decided_at": _seconds(told.decided_at_us),
        "dispatched_at": _seconds(told.dispatched_at_us),
        "outstanding": list(told.outstanding),
        "payload": told.payload,
    }


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1_000_000
