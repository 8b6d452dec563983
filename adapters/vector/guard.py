"""The guard of the index: nothing is written that was made from a record which its source does not hand out.

The guard asks inside the write, after the index has locked the tenant. A job looks again behind
the same lock. So whoever was let in before the source revoked has committed before that look,
and whoever comes later is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from orchestrator import Scope, Target


class Masters(Protocol):
    """A source of records, as the index asks it. Another source than the memory store may be one as well."""

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        """Give those of the records that the source hands out in exactly this scope now, with the scope's revision.

        A revision grows with each change of a scope. Raises `Transient` where the source does not answer.
        """
