"""Adapters that go wrong in one way each. A suite that one of them passes has a hole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tests.contract.mutants_any import (
    LIMIT,
    counts_the_neighbour,
    lazy,
    partial_page,
    same_path_verify,
    sees_the_neighbour,
    swallowed_error,
    swallowed_look,
    takes_expiry_for_the_person,
    tells_text,
    zero_match_success,
)
from tests.contract.mutants_bytes import (
    clean_while_read,
    explains_it_away,
    keeps_the_database_back,
    keeps_the_log_back,
    marker_not_stored,
    marker_of_the_dead_stays,
    marker_stays,
    names_what_is_not_there,
    scrubs_a_neighbour_away,
    scrubs_nothing,
)
from tests.contract.mutants_cache import (
    cache_derived_copy,
    cache_no_fence,
    cache_only,
    cache_prefix_delete,
    cache_soft_delete,
    cache_takes_left_over_for_absent,
    cache_wipe_everyone,
)
from tests.contract.mutants_chains import half_a_chain, hidden_is_gone, record_with_text, tenant_blind_chain
from tests.contract.mutants_memory import (
    memory_derived_copy,
    memory_prefix_delete,
    memory_soft_delete,
    memory_tenant_blind,
    memory_wipe_everyone,
)
from tests.contract.mutants_source import (
    forgets_what_it_left,
    ignores_the_hold,
    keeps_everything_for_one_item,
)

__all__ = ["CACHE", "CHAINS", "LIMIT", "MEMORY", "Mutation"]

Mutation: TypeAlias = Callable[[Any], None]
EVERY: dict[str, Mutation] = {
    "partial page": partial_page,
    "lazy": lazy,
    "zero-match success": zero_match_success,
    "same-path verify": same_path_verify,
    "swallowed error": swallowed_error,
    "counts the neighbour": counts_the_neighbour,
    "takes expiry for the person": takes_expiry_for_the_person,
}
BYTES: dict[str, Mutation] = {
    "scrubs nothing": scrubs_nothing,
    "clean while read": clean_while_read,
    "marker not stored": marker_not_stored,
    "marker stays": marker_stays,
    "keeps the log back": keeps_the_log_back,
    "keeps the database back": keeps_the_database_back,
}
MEMORY: dict[str, Mutation] = {
    **EVERY,
    **BYTES,
    "swallowed look": swallowed_look,
    "sees the neighbour": sees_the_neighbour,
    "tells text": tells_text,
    "soft delete": memory_soft_delete,
    "wipe-everyone": memory_wipe_everyone,
    "prefix delete": memory_prefix_delete,
    "tenant-blind": memory_tenant_blind,
    "copy under a derived key": memory_derived_copy,
    "ignores the hold": ignores_the_hold,
    "keeps everything for one item": keeps_everything_for_one_item,
    "forgets what it left": forgets_what_it_left,
    "marker of the dead stays": marker_of_the_dead_stays,
    "names what is not there": names_what_is_not_there,
    "scrubs a neighbour away": scrubs_a_neighbour_away,
    "explains it away": explains_it_away,
}
CHAINS: dict[str, Mutation] = {
    **BYTES,
    "half a chain": half_a_chain,
    "hidden is gone": hidden_is_gone,
    "tenant-blind chain": tenant_blind_chain,
    "record with text": record_with_text,
}
CACHE: dict[str, Mutation] = {
    **EVERY,
    "soft delete": cache_soft_delete,
    "wipe-everyone": cache_wipe_everyone,
    "prefix delete": cache_prefix_delete,
    "copy under a derived key": cache_derived_copy,
    "cache-only": cache_only,
    "no fence": cache_no_fence,
    "left over as absent": cache_takes_left_over_for_absent,
}
