"""What each step of a draft job was said to use, by id and version.

Principle: a step that nothing was said of depends on the whole scope. Two steps depend on the same
only where both were said to, and on exactly the same versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import sqlalchemy as sa

from adapters.drafts.step import Step
from adapters.drafts.tables import step_dependencies
from adapters.memory.batch import insert_new
from orchestrator import Target

Dependencies: TypeAlias = Mapping[Step, AbstractSet[Target]]


def write(connection: sa.Connection, tenant: str, handle: str, used: Dependencies) -> None:
    """Note what the steps of a job use."""
    rows = [(tenant, handle, step.value, t.kind, t.id, t.version) for step, each in used.items() for t in each]
    insert_new(connection, step_dependencies, rows)


def read(connection: sa.Connection, tenant: str, handle: str) -> Dependencies:
    """Give what the steps of a job were said to use; a step of which nothing was said is not in it."""
    s, found = step_dependencies.c, dict[Step, set[Target]]()
    for row in connection.execute(sa.select(step_dependencies).where(s.tenant == tenant, s.handle == handle)):
        found.setdefault(Step(row.step), set()).add(Target(kind=row.kind, id=row.id, version=row.version))
    return found


def unchanged(before: Dependencies, now: Dependencies, step: Step) -> bool:
    """Tell whether a step depends on what it depended on before, and on no more and no less."""
    return step in before and step in now and before[step] == now[step]
