"""The recorded scenario, replayed with and without secure_delete, compared with its recording byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.memory.chains import TaskScope
from tests.integration.chains_harness import DAY, EVERYWHERE, START, Chains, chains_in, holds, in_file

DATA = Path(__file__).parents[1] / "data"
SCENARIO: Mapping[str, Any] = json.loads((DATA / "scenario.json").read_text(encoding="utf-8"))
RECORDED = (DATA / "scenario_expected.json").read_bytes().rstrip(b"\n")
STEPS: list[dict[str, Any]] = json.loads(RECORDED)["steps"]
SCOPE, SECRET = TaskScope(*SCENARIO["user"]), SCENARIO["probe_text"]

Step = Mapping[str, Any]
chains = chains_in(*EVERYWHERE)


class Replay:
    """Runs the steps one after the other and tells each as the recording does."""

    def __init__(self, chains: Chains) -> None:
        self.chains, self.store, self.ids, self.day = chains, chains.store, dict[str, int](), 0

    def run(self) -> list[dict[str, Any]]:
        return [self.step(step) for step in SCENARIO["steps"]]

    def step(self, step: Step) -> dict[str, Any]:
        self.chains.clock.advance((step["day"] - self.day) * DAY)
        self.day = step["day"]
        do: Callable[[Step], dict[str, Any]] = getattr(self, step["op"])
        return {"day": step["day"], "op": step["op"], **do(step)}

    def remember(self, step: Step) -> dict[str, Any]:
        told = (step["level"], step["text"], step["source"], step.get("ttl_days"))
        self.ids[step["key"]] = self.store.remember(SCOPE, *told)
        return {"id": self.ids[step["key"]]}

    def correct(self, step: Step) -> dict[str, Any]:
        old = self.ids[step["key"]]
        new = self.store.correct(SCOPE, old, step["text"], step["source"], step.get("ttl_days"))
        self.ids[step["new_key"]] = new
        return {"corrected": old, "id": new}

    def recall(self, step: Step) -> dict[str, Any]:
        found = self.store.recall(SCOPE, step["query"])
        return {"query": step["query"], "recalled": [plain(memory) for memory in found]}

    def history(self, step: Step) -> dict[str, Any]:
        return {"versions": [plain(version) for version in self.store.history(SCOPE, self.ids[step["key"]])]}

    def purge_expired(self, _step: Step) -> dict[str, Any]:
        return {"removed": self.store.purge_expired()}

    def forget(self, step: Step) -> dict[str, Any]:
        return {"deleted_ids": self.store.forget(SCOPE, self.ids[step["key"]], step["reason"])}

    def deletions(self, _step: Step) -> dict[str, Any]:
        return {"records": [plain(record) for record in self.store.deletions(SCOPE)]}


def plain(told: Any) -> dict[str, Any]:  # noqa: ANN401 - any of the store's answers
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(told).items()}


def replayed(file: Path, *, secure_delete: bool) -> tuple[list[dict[str, Any]], bool]:
    """Give the steps, and whether the forgotten text is in the file after it was closed."""
    with in_file(file, secure_delete=secure_delete) as made:
        replay, steps = Replay(made), []
        for step in SCENARIO["steps"]:
            if step["op"] == "forget":
                assert holds(file, SECRET), "the probe sees the text while it is there"
            steps.append(replay.step(step))
    return steps, holds(file, SECRET)


@pytest.mark.req("R94")
@pytest.mark.req("R96")
def test_replay_equals_the_recording_byte_for_byte(tmp_path: Path) -> None:
    steps, with_it_on = replayed(tmp_path / "on.db", secure_delete=True)
    _, with_it_off = replayed(tmp_path / "off.db", secure_delete=False)
    told = {"secure_delete_on": with_it_on, "secure_delete_off": with_it_off}
    result = {"steps": steps, "forgotten_text_in_file": told}
    assert json.dumps(result, indent=2, ensure_ascii=False).encode() == RECORDED


@pytest.mark.req("R95")
def test_steps_do_not_depend_on_secure_delete(tmp_path: Path) -> None:
    on, _ = replayed(tmp_path / "on.db", secure_delete=True)
    off, _ = replayed(tmp_path / "off.db", secure_delete=False)
    assert on == off
    assert len(on) == 13


@pytest.mark.req("R96")
@pytest.mark.parametrize("secure_delete", [True, False])
def test_forgotten_text_is_in_the_file_with_secure_delete_off_alone(tmp_path: Path, *, secure_delete: bool) -> None:
    _, found = replayed(tmp_path / "chains.db", secure_delete=secure_delete)
    assert found is not secure_delete


@pytest.mark.req("R94")
def test_replay_gives_the_recorded_steps_wherever_the_chains_lie(chains: Chains) -> None:
    assert json.loads(json.dumps(Replay(chains).run())) == STEPS


@pytest.mark.req("R97")
def test_recall_and_purge_take_no_reading_of_the_clock(chains: Chains) -> None:
    Replay(chains).run()
    purged, forgotten = chains.store.deletions(SCOPE)
    assert purged.deleted_at == forgotten.deleted_at == datetime.fromisoformat("2026-10-28T09:04:00+00:00")
    # Three memories, one correction, one deletion; five recalls, a history and a purge.
    readings = chains.clock.at - START - 8 * DAY
    assert readings.total_seconds() / 60 == 5
