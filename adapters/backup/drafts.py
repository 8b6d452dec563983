"""Drafts in a copy: they lie in the source database, so a copy of it holds them as well.

Principles: a draft goes with the records that it was made from, however many drafts lie between,
and for a subject with its owner. One that was made from what a hold covers stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Final

from adapters.backup.looking import tables_of
from orchestrator import EraseOrder, SelectorKind

KIND: Final = "draft"
Origin = tuple[str, str, int]
"""Kind, id and version of a record; a version of 0 stands for every version."""
_OF_SUBJECT: Final = """
    SELECT d.handle FROM drafts AS d LEFT JOIN source_revocations AS r ON r.job = :job
    WHERE d.tenant = :tenant AND d.user_id = :user AND (:project IS NULL OR d.project = :project)
    AND coalesce(d.position <= coalesce(:cut_off, r.cut_off), TRUE)
"""
_MADE_FROM: Final = """
    SELECT d.handle FROM json_each(:origins) AS k CROSS JOIN draft_used AS u CROSS JOIN drafts AS d
    WHERE u.tenant = :tenant AND u.kind = json_extract(k.value, '$[0]') AND u.id = json_extract(k.value, '$[1]')
    AND (json_extract(k.value, '$[2]') IN (u.version, 0) OR u.version = 0)
    AND d.tenant = :tenant AND d.handle = u.handle
"""
_MADE_FROM_HELD: Final = """
    SELECT u.handle FROM json_each(:held) AS k CROSS JOIN draft_used AS u
    WHERE u.tenant = :tenant AND u.kind IN ('fact', 'memory', 'event') AND u.id = k.value
"""
_ONE: Final = "SELECT 1 FROM drafts WHERE tenant = ? AND handle = ?"
_USED: Final = "DELETE FROM draft_used WHERE tenant = ? AND handle IN (SELECT value FROM json_each(?))"
_DRAFTS: Final = "DELETE FROM drafts WHERE tenant = ? AND handle IN (SELECT value FROM json_each(?)) RETURNING job"
# What such a job was begun with is not there any more.
_STOP: Final = """UPDATE draft_jobs SET state = 'failed', lease_owner = NULL, lease_until_us = NULL
    WHERE tenant = ? AND state = 'open' AND handle IN (SELECT value FROM json_each(?))"""
# Nor is what a person was to approve.
_VOID: Final = """UPDATE approvals SET state = 'void'
    WHERE tenant = ? AND state IN ('pending', 'approved') AND handle IN (SELECT value FROM json_each(?))"""


def named(
    connection: sqlite3.Connection,
    order: EraseOrder,
    origins: Collection[Origin],
    asked: Mapping[str, str | int | None],
) -> tuple[str, ...]:
    """Give the handles of the drafts that an order names: those made from records that go, and a subject's own.

    `asked` are the parameters that say who asks for what.
    """
    if not _are_here(connection):
        return ()
    scope, held = order.scope, json.dumps(sorted(order.held), ensure_ascii=False)
    given = {"tenant": scope.tenant, "origins": json.dumps(sorted(origins), ensure_ascii=False), "held": held}
    going = {handle for (handle,) in connection.execute(_MADE_FROM, given)}
    if order.selector.kind is SelectorKind.SUBJECT:
        going.update(handle for (handle,) in connection.execute(_OF_SUBJECT, asked))
    if order.held:
        going.difference_update(handle for (handle,) in connection.execute(_MADE_FROM_HELD, given))
    return tuple(sorted(going))


def holds(connection: sqlite3.Connection, tenant: str, handle: str) -> bool:
    """Tell whether a copy holds a draft of a tenant, whoever owns it."""
    return _are_here(connection) and connection.execute(_ONE, (tenant, handle)).fetchone() is not None


def delete(new: sqlite3.Connection, tenant: str, handles: Collection[str]) -> None:
    """Delete drafts with what is known of their origins; a job that one was made for does not go on."""
    given = json.dumps(list(handles), ensure_ascii=False)
    new.execute(_USED, (tenant, given))
    jobs = [job for (job,) in new.execute(_DRAFTS, (tenant, given)).fetchall()]
    stopped = (tenant, json.dumps(jobs, ensure_ascii=False))
    new.execute(_STOP, stopped)
    if "approvals" in tables_of(new):
        new.execute(_VOID, stopped)


def _are_here(connection: sqlite3.Connection) -> bool:
    return "drafts" in tables_of(connection)
