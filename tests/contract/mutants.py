"""Adapters that go wrong in one way each. A suite that one of them passes has a hole."""

from __future__ import annotations

from functools import partial

from tests.contract.mutants_any import (
    LIMIT,
    answers_with_text,
    counts_the_neighbour,
    late_writers_unseen,
    lazy,
    logs_text,
    partial_page,
    past_its_deadline,
    same_path_verify,
    sees_the_neighbour,
    swallowed_error,
    swallowed_look,
    takes_expiry_for_the_person,
    takes_left_over_for_absent,
    tells_text,
    zero_match_success,
)
from tests.contract.mutants_backup import (
    FEW,
    backup_dropped,
    backup_edited_in_place,
    backup_kept_elsewhere,
    backup_kept_inside,
    backup_late_copies_unseen,
    backup_looks_by_the_manifest,
    backup_lose,
    backup_not_offered,
    backup_prefix_delete,
    backup_soft_delete,
    backup_tenant_blind,
    backup_text_in_the_source,
    backup_wipe_everyone,
)
from tests.contract.mutants_bytes import (
    clean_while_read,
    explains_it_away,
    keeps_one_file_back,
    marker_not_stored,
    marker_of_the_dead_stays,
    marker_stays,
    names_one_file,
    names_what_is_not_there,
    scrubs_a_neighbour_away,
    scrubs_nothing,
    tells_nothing_alive,
)
from tests.contract.mutants_cache import (
    cache_derived_copy,
    cache_no_fence,
    cache_only,
    cache_prefix_delete,
    cache_soft_delete,
    cache_wipe_everyone,
)
from tests.contract.mutants_chains import half_a_chain, hidden_is_gone, record_with_text, tenant_blind_chain
from tests.contract.mutants_closure import (
    cache_takes_what_says_the_same,
    follows_facts_alone,
    knows_no_subject,
    looks_from_facts_alone,
    takes_every_project,
    takes_every_version,
    vector_takes_what_says_the_same,
)
from tests.contract.mutants_drafts import (
    DRAFT_ROWS,
    drafts_keep_their_origins,
    drafts_not_served,
    drafts_of_others_are_absent,
    drafts_text_in_the_job,
)
from tests.contract.mutants_keyed import (
    CANDIDATE_ROWS,
    EVENT_ROWS,
    candidate_stays_open,
    candidates_stay,
    looks_at_the_log_alone,
    mark_not_written,
    value_stays,
    what_holds_stays,
)
from tests.contract.mutants_rows import Rows, mutants_of
from tests.contract.mutants_source import (
    forgets_what_it_left,
    ignores_the_hold,
    keeps_everything_for_one_item,
)
from tests.contract.mutants_vector import POINTS, vector_as_its_sketch, vector_not_served, vector_without_guard
from tests.contract.mutation import Mutation

__all__ = [
    "BACKUP",
    "CACHE",
    "CANDIDATES",
    "CHAINS",
    "DRAFTS",
    "EVENTS",
    "FEW",
    "LIMIT",
    "MEMORY",
    "VECTOR",
    "Mutation",
]

EVERY: dict[str, Mutation] = {
    "partial page": partial_page,
    "lazy": lazy,
    "zero-match success": zero_match_success,
    "same-path verify": same_path_verify,
    "swallowed error": swallowed_error,
    "swallowed look": swallowed_look,
    "past its deadline": past_its_deadline,
    "counts the neighbour": counts_the_neighbour,
    "sees the neighbour": sees_the_neighbour,
    "takes expiry for the person": takes_expiry_for_the_person,
    "tells text": tells_text,
    "logs text": logs_text,
    "answers with text": answers_with_text,
}
LOG: dict[str, Mutation] = {
    "scrubs nothing": scrubs_nothing,
    "keeps the log back": names_one_file,
    "keeps the database back": keeps_one_file_back,
}
BYTES: dict[str, Mutation] = {
    "clean while read": clean_while_read,
    "marker not stored": marker_not_stored,
    "marker stays": marker_stays,
}
MORE_BYTES: dict[str, Mutation] = {
    "marker of the dead stays": marker_of_the_dead_stays,
    "names what is not there": names_what_is_not_there,
    "explains it away": explains_it_away,
    "tells nothing alive": tells_nothing_alive,
}
MEMORY: dict[str, Mutation] = {
    **EVERY,
    **LOG,
    **BYTES,
    **MORE_BYTES,
    **mutants_of(Rows("facts", "fact_id", ("user_id", "fact_id"))),
    "ignores the hold": ignores_the_hold,
    "keeps everything for one item": keeps_everything_for_one_item,
    "forgets what it left": forgets_what_it_left,
}
CHAINS: dict[str, Mutation] = {
    **LOG,
    **BYTES,
    "half a chain": half_a_chain,
    "hidden is gone": hidden_is_gone,
    "tenant-blind chain": tenant_blind_chain,
    "record with text": record_with_text,
}
EVENTS: dict[str, Mutation] = {
    # What holds by an event is a neighbour's as well: a scrub that takes its event leaves that in the file.
    **{name: mutation for name, mutation in mutants_of(EVENT_ROWS).items() if name != "scrubs a neighbour away"},
    "ignores the hold": ignores_the_hold,
    "explains it away": explains_it_away,
    "tells nothing alive": tells_nothing_alive,
    "what holds stays": what_holds_stays,
    "value stays": value_stays,
    "mark not written": mark_not_written,
    "looks at the log alone": looks_at_the_log_alone,
}
CANDIDATES: dict[str, Mutation] = {
    **mutants_of(CANDIDATE_ROWS),
    "ignores the hold": ignores_the_hold,
    "candidate stays open": candidate_stays_open,
    "candidates stay": candidates_stay,
}
CACHE: dict[str, Mutation] = {
    **EVERY,
    "soft delete": cache_soft_delete,
    "wipe-everyone": cache_wipe_everyone,
    "prefix delete": cache_prefix_delete,
    "copy under a derived key": cache_derived_copy,
    "cache-only": cache_only,
    "no fence": cache_no_fence,
    "left over as absent": takes_left_over_for_absent,
    "follows facts alone": follows_facts_alone,
    "looks from facts alone": looks_from_facts_alone,
    "takes what says the same": cache_takes_what_says_the_same,
    "takes every version": takes_every_version,
    "knows no subject": knows_no_subject,
    "takes every project": takes_every_project,
}
VECTOR: dict[str, Mutation] = {
    **EVERY,
    **LOG,
    **BYTES,
    **MORE_BYTES,
    **mutants_of(POINTS),
    "cache-only": vector_not_served,
    "no fence": vector_without_guard,
    "left over as absent": takes_left_over_for_absent,
    "text where none belongs": vector_as_its_sketch,
    "follows facts alone": follows_facts_alone,
    "takes what says the same": vector_takes_what_says_the_same,
    "takes every version": takes_every_version,
    "knows no subject": knows_no_subject,
    "takes every project": takes_every_project,
}
DRAFTS: dict[str, Mutation] = {
    **EVERY,
    **LOG,
    **BYTES,
    **MORE_BYTES,
    **mutants_of(DRAFT_ROWS),
    "cache-only": drafts_not_served,
    "late writers unseen": late_writers_unseen,
    "left over as absent": drafts_of_others_are_absent,
    "text where none belongs": drafts_text_in_the_job,
    "origins of nothing": drafts_keep_their_origins,
    "takes every version": takes_every_version,
    "knows no subject": knows_no_subject,
    "takes every project": takes_every_project,
}
BACKUP: dict[str, Mutation] = {
    **EVERY,
    **BYTES,
    **MORE_BYTES,
    "partial page": partial(partial_page, limit=FEW),
    # Find looks into every file by what lies in it, as a look does: what an erase goes by is the manifest.
    "same-path verify": backup_looks_by_the_manifest,
    "soft delete": backup_soft_delete,
    "wipe-everyone": backup_wipe_everyone,
    "the whole copy": backup_dropped,
    "prefix delete": backup_prefix_delete,
    "tenant-blind": backup_tenant_blind,
    "copy under a derived key": backup_kept_inside,
    "copy in another place": backup_kept_elsewhere,
    "text where none belongs": backup_text_in_the_source,
    "cache-only": backup_not_offered,
    "late writers unseen": backup_late_copies_unseen,
    "left over as absent": takes_left_over_for_absent,
    "scrubs nothing": backup_edited_in_place,
    "names the marker alone": names_one_file,
    "keeps the marker back": keeps_one_file_back,
    "scrubs a neighbour away": partial(scrubs_a_neighbour_away, lose=backup_lose),
}
