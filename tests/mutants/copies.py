"""One rule of the cache and the index changed at a time, and the tests that have to notice it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import change, together

MUTATIONS: Final = (
    change(
        "a fill from before a revocation is taken",
        "adapters/cache/lua.py",
        "for n = 2, 3 do",
        "for n = 2, 1 do",
        "tests/integration/test_cache_fence.py::test_fill_that_began_before_the_erase_is_refused[fakeredis-project]",
    ),
    change(
        "a point whose record is not handed out is shown",
        "adapters/vector/index.py",
        "if near.made_from is None or near.made_from not in active:",
        "if near.made_from is None:",
        "tests/integration/test_vector_search.py::test_hit_on_version_1_is_dropped_and_counted_when_2_is_active[sqlite]",
    ),
    together(
        "a point whose record is not handed out is kept",
        (
            ("adapters/vector/index.py", "for record, row in rows if record in active]", "for record, row in rows]"),
            ("adapters/vector/index.py", '"revision": active[record]', '"revision": active.get(record, 0)'),
        ),
        "tests/integration/test_vector_guard.py::test_vector_of_a_version_that_is_not_active_any_more_is_refused_and_counted[sqlite]",
    ),
)
