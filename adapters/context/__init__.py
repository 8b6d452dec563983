"""What of the memory goes to a model: assembled for one person and one task, kept with its origin, and looked into."""

from adapters.context.assemble import Assembler
from adapters.context.assembled import Assembled, Item
from adapters.context.by_vector import by_vector
from adapters.context.diagnose import Diagnosis, Stage
from adapters.context.errors import InputTaken, InputUnknown, MemoryUnsettled
from adapters.context.inspection import Inspection
from adapters.context.inspector import Inspector
from adapters.context.rank import Ranked, Ranking, by_words
from adapters.context.record import Record, Scoped
from adapters.context.render import render
from adapters.context.stale import Stale

__all__ = [
    "Assembled",
    "Assembler",
    "Diagnosis",
    "InputTaken",
    "InputUnknown",
    "Inspection",
    "Inspector",
    "Item",
    "MemoryUnsettled",
    "Ranked",
    "Ranking",
    "Record",
    "Scoped",
    "Stage",
    "Stale",
    "by_vector",
    "by_words",
    "render",
]
