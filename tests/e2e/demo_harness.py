"""The story of the demo, played once for many tests: its folder and its cache are copied, and the copies looked at."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from adapters.demo.processes import Processes
from adapters.demo.progress import Narrator
from adapters.demo.stage import Stage, Told
from adapters.demo.story import played
from adapters.demo.world import World
from tests.servers import fake_redis


@dataclass
class Heard(Narrator):
    """Remembers what was told."""

    acts: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def act(self, title: str) -> None:
        self.acts.append(title)

    def say(self, line: str) -> None:
        self.lines.append(line)


@dataclass(frozen=True)
class Played:
    """A story that has been told: its folder, what was seen, and what the embedded cache held when it ended."""

    folder: Path
    told: Told
    entries: dict[bytes, dict[bytes, bytes]]
    heard: Heard


def play(folder: Path, fault: str | None = None) -> Played:
    heard = Heard()
    with played(folder, fault, heard) as stage:
        entries = {key: dict(entry) for key, entry in stage.world.snapshot().answers.items()}
        told = stage.told
    return Played(folder, told, entries, heard)


@contextmanager
def staged(story: Played, folder: Path) -> Iterator[Stage]:
    """Open a copy of a played story, with the entries of its cache in a server of its own."""
    shutil.copytree(story.folder, folder)
    with fake_redis() as url, Processes(folder) as processes:
        client: Any = redis.Redis.from_url(url)
        for key, entry in story.entries.items():
            client.hset(key, mapping=entry)
        client.close()
        (folder / "state" / "cache.port").write_text(url.rpartition(":")[2].removesuffix("/0"))
        world = World.open(folder)
        try:
            yield Stage(world=world, processes=processes, told=copy.deepcopy(story.told))
        finally:
            world.close()
