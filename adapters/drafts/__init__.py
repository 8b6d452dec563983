"""Draft jobs that turn facts into reports, and the adapter through which deletion jobs reach what they made."""

from adapters.drafts.adapter import DraftsAdapter
from adapters.drafts.approvals.cancel import Cancelled
from adapters.drafts.approvals.gateway import Gateway, Tool
from adapters.drafts.approvals.library import Approvals
from adapters.drafts.approvals.state import Answer, ApprovalState, Place
from adapters.drafts.approvals.validity import IsMember
from adapters.drafts.approvals.view import ApprovalView, Receipt
from adapters.drafts.errors import (
    ApprovalDecided,
    ApprovalPending,
    ApprovalTaken,
    ApprovalUnknown,
    ApprovalVoid,
    DispatchRunning,
    JobCancelled,
    JobLeased,
    JobTaken,
    JobUnknown,
    LeaseLost,
    MemoryChanged,
    NoMember,
    ReportUnusable,
    StaleDispatch,
    ToolRefused,
)
from adapters.drafts.runtime import DraftRuntime
from adapters.drafts.step import Fault, State, Step
from adapters.drafts.view import Draft, JobView

__all__ = [
    "Answer",
    "ApprovalDecided",
    "ApprovalPending",
    "ApprovalState",
    "ApprovalTaken",
    "ApprovalUnknown",
    "ApprovalView",
    "ApprovalVoid",
    "Approvals",
    "Cancelled",
    "DispatchRunning",
    "Draft",
    "DraftRuntime",
    "DraftsAdapter",
    "Fault",
    "Gateway",
    "IsMember",
    "JobCancelled",
    "JobLeased",
    "JobTaken",
    "JobUnknown",
    "JobView",
    "LeaseLost",
    "MemoryChanged",
    "NoMember",
    "Place",
    "Receipt",
    "ReportUnusable",
    "StaleDispatch",
    "State",
    "Step",
    "Tool",
    "ToolRefused",
]
