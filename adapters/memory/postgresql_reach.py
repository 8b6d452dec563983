"""What a client of PostgreSQL cannot take out of its files, and who keeps the server from doing so.

Plain VACUUM frees the space of deleted rows and writes over none of it. VACUUM FULL rewrites a
table, under a lock that stops everybody, and silently keeps every row that some old snapshot
could still see. The log keeps both versions, and the planner keeps samples of whole values.
So a client says what stays; it does not try.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from orchestrator import AdapterContext, Residual, Scrubbed, ScrubReport

_STAYS: Final = frozenset(
    {Residual.DEAD_TUPLES, Residual.WRITE_AHEAD_LOG, Residual.WAL_ARCHIVE, Residual.PLANNER_SAMPLES}
)
# What is written by an open transaction holds rows back as well as what it can see. Sessions of no
# database are those that send the log on; those of another database hold nothing back here.
_HOLDERS: Final = """
    SELECT pid FROM pg_stat_activity
    WHERE coalesce(backend_xmin, backend_xid) IS NOT NULL AND pid <> pg_backend_pid()
      AND coalesce(datname, current_database()) = current_database()
    ORDER BY age(coalesce(backend_xmin, backend_xid)) DESC, pid LIMIT 20
"""
_OTHERS: Final = """
    SELECT (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()) AS prepared,
           (SELECT count(*) FROM pg_replication_slots) AS slots,
           (SELECT count(*) FROM pg_stat_replication) AS replicas,
           pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all
"""


def reach(connection: sa.Connection, context: AdapterContext) -> ScrubReport:
    """Say what stays in the server's files; log by process id who keeps deleted rows from being removed."""
    pids = list(connection.exec_driver_sql(_HOLDERS).scalars())
    others = connection.exec_driver_sql(_OTHERS).one()
    if pids or others.prepared or others.slots:
        # Without `sees_all` the sessions of other users are not among the pids.
        facts = {"prepared": others.prepared, "slots": others.slots, "sees_all": others.sees_all}
        context.log.warning("store.rows_held_back", pids=pids, **facts)
    copied = {Residual.REPLICA_COPY} if others.replicas else frozenset()
    return ScrubReport(outcome=Scrubbed.UNSUPPORTED, residuals=_STAYS | copied)
