"""One rule changed at a time of what is no provenance store: preferences, tasks, the gate, jobs."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation

MUTATIONS: Final[tuple[Mutation, ...]] = ()
