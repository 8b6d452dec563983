"""Under a role that is bound, hot reads and writes go by the indexes that begin with their tenant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from orchestrator import AdapterContext, Gate, Keyring, Scope, Target
from tests.fakes import FakeClock
from tests.integration.rows_harness import application, as_role, bind, execute, owned
from tests.postgres import Server, new_database

A: Final = Scope(tenant="tenant-7", user="user-7", project="trips")
TASK: Final = TaskScope("user-7-7", "trips", "tenant-7")
# 40 tenants with 25 users each, who told as much; but for their memories, whose index begins with the user, they
# bear the same names.
FILL: Final = """
    CREATE TEMPORARY VIEW people AS SELECT t, u FROM generate_series(1, 40) AS t, generate_series(1, 25) AS u;
    INSERT INTO accepted_sources SELECT 'tenant-' || t, 'turn-' || u || '-' || n, 'user-' || u, 'trips',
        'user_message', u * 10 + n, 0 FROM people, generate_series(0, 9) AS n;
    INSERT INTO facts SELECT 'tenant-' || t, 'user-' || u, 'trips', 'key-' || k, v, t || '-' || u || '-' || k,
        'told', 'turn-' || u || '-0', 1, 'infinity', v / 2, CASE v WHEN 2 THEN 'live' ELSE 'replaced' END
        FROM people, generate_series(1, 10) AS k, generate_series(1, 2) AS v;
    INSERT INTO fact_revisions SELECT 'tenant-' || t, 'user-' || u, 'trips', 20 FROM people;
    INSERT INTO source_tombstones SELECT 'tenant-' || t, 'tk-1', md5(t || '-' || n), 'text', 'job-' || n, 1
        FROM generate_series(1, 40) AS t, generate_series(1, 250) AS n;
    INSERT INTO memories (user_id, task_id, text, source, created_at)
        SELECT 'user-' || t || '-' || u, 'trips', 'Eats no nuts, as tenant-' || t || ' knows.', 'turn-0', now()
        FROM people, generate_series(1, 5);
    INSERT INTO memory_tenants SELECT id, substring(text FROM 'tenant-[0-9]+'), 0 FROM memories;
    INSERT INTO tenant_positions SELECT 'tenant-' || t, 1000 FROM generate_series(1, 40) AS t;
    ANALYZE
"""
LARGE: Final = "accepted_sources|facts|fact_revisions|source_tombstones|memories|memory_tenants"


@pytest.fixture(scope="module")
def adapter(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryAdapter]:
    """Give a store under the role, in a database in which many tenants told the same."""
    url = new_database(postgres_server)
    owner, role = owned(url), application(url)
    bind(owner, role)
    execute(owner, FILL)
    log, folder = structlog.get_logger(), tmp_path_factory.mktemp("plans")
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32})), log=log, state_dir=folder
    )
    with closing(MemoryAdapter(context, url=as_role(owner, role))) as made:
        yield made


def put(adapter: MemoryAdapter) -> object:
    adapter.store.register_source(A, "turn-new")
    return adapter.store.put(A, "key-3", "told anew", "turn-new")


USES: Mapping[str, Callable[[MemoryAdapter], object]] = {
    "current": lambda adapter: adapter.store.current(A),
    "revision": lambda adapter: adapter.store.revision(A),
    "put": put,
    "forget": lambda adapter: adapter.store.forget(A, "key-4"),
    "recall": lambda adapter: adapter.chains.recall(TASK, "Which nuts?"),
    "masters": lambda adapter: adapter.masters.active(A, [Target(kind="fact", id="7-7-5", version=2)]),
}


@pytest.mark.req("R6")
@pytest.mark.parametrize("use", USES)
def test_composite_indexes_are_used_under_the_role(adapter: MemoryAdapter, use: str) -> None:
    plans: list[str] = []

    def explain(_connection: object, cursor: Any, statement: str, parameters: Any, *_: object) -> None:  # noqa: ANN401
        if re.match(r"SELECT|WITH|UPDATE", statement) and re.search(rf"\b({LARGE})\b", statement):
            with cursor.connection.cursor() as beside:
                beside.execute(f"EXPLAIN {statement}", parameters)
                plans.append("\n".join(line for (line,) in beside.fetchall()))

    adapter.chains  # noqa: B018 - opened before anything is looked at
    sa.event.listen(adapter._engine, "before_cursor_execute", explain)
    try:
        assert USES[use](adapter)
    finally:
        sa.event.remove(adapter._engine, "before_cursor_execute", explain)
    assert plans
    whole = [plan for plan in plans if re.search(rf"Seq Scan on ({LARGE})\b", plan)]
    assert whole == []
    assert all("expunge.tenant" in plan for plan in plans), "the policies are asked"
