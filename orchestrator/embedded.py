"""What `expunge up` runs for adapters that want an embedded service, and whether it is still coming up."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from orchestrator.settings import Settings
from orchestrator.state_directory import held_for

GROUP: Final = "expunge.services"
LOCK: Final = "up.lock"
STARTING: Final = 15.0
"""Seconds from the beginning of `expunge up` in which a service may not answer yet."""


def services(config: Settings) -> dict[str, list[str]]:
    """Ask each enabled adapter for the command of the service that it wants embedded; give those that want one."""
    found = {}
    for point in entry_points(group=GROUP):
        options = config.adapters.get(point.name)
        command = None if options is None else point.load()(config.state_dir, options)
        if command is not None:
            found[point.name] = command
    return found


def starting(config: Settings) -> frozenset[str]:
    """Name the adapters whose embedded service `expunge up` has begun to start within the last seconds."""
    since = held_for(config.state_dir / LOCK)
    return frozenset(services(config)) if since is not None and since < STARTING else frozenset()
