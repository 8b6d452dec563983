"""Each check of the demo has a fault that it is there to catch: planted, it turns exactly that check false."""

from __future__ import annotations

import json

import pytest

from adapters.demo.story import CHECKS
from tests.e2e.test_demo import demo


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", CHECKS)
def test_planted_fault_is_caught_by_its_check_alone(name: str) -> None:
    code, text = demo("--json", "--break", name)
    said = json.loads(text)
    false = {check["name"]: check["detail"] for check in said["checks"] if not check["ok"]}
    assert (code, list(false)) == (1, [name])
    if name == "killed_worker_is_survived":  # the fault is a bad survival, not a missing kill
        assert false[name] == "killed: True; attempts 1, already_absent 2, nothing_found"
        assert [job["state"] for job in said["jobs"]] == ["completed", "completed"]
