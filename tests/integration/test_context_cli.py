"""`expunge memory why` as a process of its own: what it prints, and how it ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from adapters.context import Assembler, by_words
from adapters.memory import MemoryAdapter
from orchestrator import Scope, bootstrap
from tests.integration.cli_harness import Shell
from tests.integration.context_harness import person
from tests.integration.drafts_harness import with_drafts

ANNA = Scope(tenant="acme", user="anna", project="trips")
WHO = ("--tenant", "acme", "--user", "anna")
WHY = ("memory", "why", "answer_detail", *WHO)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Give a shell on a source database in which Anna has told what she prefers, twice in general."""
    made = Shell(tmp_path / "state")
    assert made("init")[0] == 0
    with_drafts(made.state)
    with closing(cast("MemoryAdapter", bootstrap.open_adapter(made.state, "memory"))) as memory:
        general = Scope(tenant="acme", user="anna")
        memory.store.register_source(general, "turn-1")
        for value in ("brief", "detailed"):
            memory.preferences.prefer(general, "answer_detail", value, "turn-1")
    return made


def test_tells_what_decides_and_that_every_check_holds(shell: Shell) -> None:
    told = "answer_detail = detailed (event 3, global, as of 3, supersedes 2)\nevery check holds\n"
    assert shell(*WHY) == (0, told, "")
    assert shell(*WHY, "--project", "trips", "--as-of", "2")[1].splitlines()[0] == (
        "answer_detail = brief (event 2, global, as of 2)"
    )


def test_tells_the_first_check_that_fails_and_what_an_input_is_behind_by(shell: Shell) -> None:
    drafts = bootstrap.open_adapter(shell.state, "drafts")
    memory = cast("MemoryAdapter", bootstrap.open_adapter(shell.state, "memory"))
    with closing(drafts), closing(memory):
        made = Assembler(drafts, person(ANNA))  # type: ignore[arg-type]
        made.assemble("turn-1", by_words("?"), project="trips", preferences=["answer_detail"])
        memory.preferences.prefer(ANNA, "answer_detail", "brief", "turn-1")
    code, out, error = shell(*WHY, "--project", "trips", "--input", "turn-1")
    assert (code, error) == (1, "")
    assert out.splitlines() == [
        "answer_detail = brief (event 4, project:trips, as of 4)",
        "not included: It is not in the input: left out, or said after the input was made.",
        "stale: event answer_detail was 3, is 4",
    ]
    told = shell.json(*WHY, "--project", "trips", "--input", "turn-1")
    assert (told["failed"], told["sequence"], [one["in_input"] for one in told["stale"]]) == ("included", 4, [3])


def test_nothing_said_ends_with_5_and_an_unknown_input_with_3(shell: Shell) -> None:
    code, out, _ = shell("memory", "why", "theme", *WHO)
    assert (code, out.splitlines()[1].split(":")[0]) == (5, "not captured")
    assert shell(*WHY[:-1], "berta")[0] == 5, "another user's are not told"
    code, out, error = shell(*WHY, "--input", "no-such")
    assert (code, out, "There is no input of this name in this scope." in error) == (3, "", True)
    code, out, error = shell(*WHY, "--as-of", "-1")
    assert (code, out, "as_of must be a whole number" in error) == (2, "", True)
