"""What is written down names nobody: neither the control database nor the log lines of all processes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import QUESTIONS, SCOPES, SIGNS
from adapters.demo.processes import LOG
from adapters.demo.stage import Stage
from adapters.demo.world import World

WORDS: Final = (*sorted({scope.user for scope in SCOPES}), *SIGNS, *QUESTIONS.values())
"""People and texts that occur in the story."""
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
_NAMED: Final = "UPDATE deletion_jobs SET reference = 'case-of-reader-a' WHERE selector_kind = 'key'"


def _ledger_names_nobody(stage: Stage) -> tuple[bool, str]:
    values = [
        value
        for (table,) in stage.ledger(_TABLES)
        for row in stage.ledger(f"SELECT * FROM {table}")  # noqa: S608 - names out of the schema itself
        for value in row
    ]
    hits = sum(_names(str(value), WORDS) for value in values)
    return hits == 0 < len(values), f"{hits} of {len(values)} values name a person or a text"


def _logs_name_nobody(stage: Stage) -> tuple[bool, str]:
    lines = (stage.world.folder / LOG).read_text(errors="replace").splitlines()
    hits = sum(_names(line, WORDS) for line in lines)
    return hits == 0 < len(lines), f"{hits} of {len(lines)} lines name a person or a text"


def _names(text: str, words: Collection[str]) -> bool:
    return any(word in text for word in words)


def _name_the_reader(world: World) -> None:
    with sight.database(world.ledger) as ledger:
        ledger.execute(_NAMED)


def _log_a_question(world: World) -> None:
    with (world.folder / LOG).open("a") as log:
        log.write(f"asked: {QUESTIONS['allergy']}\n")


CHECKS: Final = (
    Check(name="ledger_names_nobody", look=_ledger_names_nobody, plant=_name_the_reader),
    Check(name="logs_name_nobody", look=_logs_name_nobody, plant=_log_a_question),
)
