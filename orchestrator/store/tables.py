"""The control database's tables as SQLAlchemy sees them: the columns that are used; migrations own the rest."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

METADATA: Final = sa.MetaData()


def _table(name: str, text: str = "", number: str = "", binary: str = "") -> sa.Table:
    columns: list[sa.Column[Any]] = [sa.Column(c, sa.Text) for c in text.split()]
    columns += [sa.Column(c, sa.BigInteger) for c in number.split()]
    columns += [sa.Column(c, sa.LargeBinary) for c in binary.split()]
    return sa.Table(name, METADATA, *columns)


jobs: Final = _table(
    "deletion_jobs",
    "id purpose tenant user_id project selector_kind selector_value subject_ref selector_ref trigger_kind "
    "reason_code reference requested_by_ref idempotency_ref payload_sha256 state",
    "round revision due_at_us requested_at_us revoked_at_us cleanup_at_us verified_at_us completed_at_us "
    "cancelled_at_us",
)
transitions: Final = _table("job_transitions", "job_id from_state to_state worker", "at_us")
targets: Final = _table(
    "deletion_targets", "job_id adapter kind handle derived_of item_ref", "version page round find_pass"
)
units: Final = _table(
    "deletion_units",
    "id job_id tenant adapter phase status parked cursor item_ref known_adapter lease_owner last_error_code",
    "page round required find_pass known_page no_lineage attempts fence lease_until_us next_attempt_at_us deadline_us",
)
attempts: Final = _table("unit_attempts", "unit_id error_code", "attempt fence at_us")
receipts: Final = _table(
    "deletion_receipts",
    "id unit_id job_id adapter phase outcome reach scrub_run_id residuals",
    "page round attempt fence started_at_us finished_at_us expected erased already_absent scheduled extra remaining",
    "body salt",
)
windows: Final = _table("retention_windows", "job_id adapter copy_handle", "until_us closed_at_us")
waivers: Final = _table("waivers", "job_id adapter reason_code granted_by_ref", "at_us")
scrub_runs: Final = _table(
    "scrub_runs",
    "id store lease_owner outcome error_code",
    "lease_until_us started_at_us finished_at_us control_found",
)
fingerprints: Final = _table("fingerprints", "job_id mac", "roll")
tombstones: Final = _table("tombstones", "tenant key_id mac kind job_id reason_code", "cut_off created_at_us")
holds: Final = _table(
    "legal_holds",
    "id tenant subject_ref item_ref reason_code reference placed_by_ref released_by_ref",
    "placed_at_us in_force_at_us released_at_us",
)
sources: Final = _table("sources", "adapter", "epoch")
restores: Final = _table("restore_replays", "copy_handle", "restored_at_us tombstones erased finished_at_us")
health: Final = _table("adapter_health", "adapter breaker", "failures open_until_us announced_at_us looked_at_us")

DUE_NEVER: Final = 2**62
"""When a unit of an ended job is due: nobody waits for it any more."""


def written(word: str) -> sa.ColumnClause[str]:
    """Give a word of ours as it stands in the statement: no database takes a partial index for a bound value."""
    return sa.literal_column(f"'{word}'", sa.Text)


PENDING: Final = written("pending")
RUNNING: Final = written("running")
DONE: Final = written("done")
