"""Each check of the demo has a fault that it is there to catch: planted, it turns exactly that check false.

The story is played once; a fault that is planted after it is planted in a copy. Those that act
while the story runs have a run of their own, by the command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters.demo import sight
from adapters.demo.checks import CHECKS, look
from adapters.demo.people import CONTROL, WITNESS
from adapters.demo.story import ACTS
from tests.e2e.demo_harness import Played, play, staged
from tests.e2e.test_demo import demo

ON_THE_WAY = sorted(name for name, check in CHECKS.items() if check.plant is None)
AFTERWARDS = [name for name in CHECKS if name not in ON_THE_WAY]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("demo"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", AFTERWARDS)
def test_planted_fault_is_caught_by_its_check_alone(name: str, story: Played, tmp_path: Path) -> None:
    with staged(story, tmp_path / "copy") as stage:
        verdicts = look(stage, name)
    assert {verdict.name: verdict.detail for verdict in verdicts if not verdict.ok}.keys() == {name}


@pytest.fixture(scope="module")
def broken() -> Mapping[str, tuple[int, str]]:
    """Play the story with each fault on the way, all at once: most of a story is waiting."""
    with ThreadPoolExecutor(len(ON_THE_WAY)) as pool:
        told = pool.map(lambda name: demo("--json", "--break", name)[:2], ON_THE_WAY)
    return dict(zip(ON_THE_WAY, told, strict=True))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ON_THE_WAY)
def test_fault_on_the_way_is_caught_by_its_check_alone(name: str, broken: Mapping[str, tuple[int, str]]) -> None:
    code, text = broken[name]
    said = json.loads(text)
    false = {check["name"]: check["detail"] for check in said["checks"] if not check["ok"]}
    assert (code, list(false)) == (1, [name])
    assert {job["state"] for job in said["jobs"]} == {"completed"}
    if name == "killed_worker_is_survived":  # the fault is a bad survival, not a missing kill
        assert false[name] == "killed: True; attempts 1, already_absent 2, nothing_found"


@pytest.mark.timeout(300)
def test_nothing_is_false_where_nothing_was_planted(story: Played, tmp_path: Path) -> None:
    with staged(story, tmp_path / "copy") as stage:
        verdicts = look(stage, None)
    assert [(verdict.name, verdict.detail) for verdict in verdicts if not verdict.ok] == []


@pytest.mark.timeout(300)
def test_story_has_as_many_acts_as_it_promises(story: Played) -> None:
    assert len(story.heard.acts) == ACTS
    assert len(set(story.heard.acts)) == ACTS


@pytest.mark.timeout(300)
def test_look_at_bytes_that_does_not_see_its_control_is_not_true(story: Played, tmp_path: Path) -> None:
    with staged(story, tmp_path / "copy") as stage:
        with sight.database(stage.world.source) as source:
            source.execute("DELETE FROM facts WHERE tenant = ? AND value LIKE ?", (WITNESS.tenant, f"{CONTROL}%"))
            source.execute("DELETE FROM drafts WHERE tenant = ?", (WITNESS.tenant,))
            source.commit()
            source.execute("VACUUM")
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ok, detail = CHECKS["memory_files_hold_nothing"].look(stage)
    assert not ok
    assert detail.startswith("0 of ")
    assert detail.endswith("NOT SEEN")
