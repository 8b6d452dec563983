"""Draft jobs that turn facts into reports, and the adapter through which deletion jobs reach what they made."""

from adapters.drafts.adapter import DraftsAdapter
from adapters.drafts.errors import JobLeased, JobTaken, JobUnknown, LeaseLost, MemoryChanged, ReportUnusable
from adapters.drafts.runtime import DraftRuntime
from adapters.drafts.step import Fault, State, Step
from adapters.drafts.view import Draft, JobView

__all__ = [
    "Draft",
    "DraftRuntime",
    "DraftsAdapter",
    "Fault",
    "JobLeased",
    "JobTaken",
    "JobUnknown",
    "JobView",
    "LeaseLost",
    "MemoryChanged",
    "ReportUnusable",
    "State",
    "Step",
]
