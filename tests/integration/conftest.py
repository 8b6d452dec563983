"""The fixtures that several files of one store share; each lies with the rest of its harness."""

from __future__ import annotations

from tests.integration.cache_harness import cache, redis_url, server
from tests.integration.engine_harness import stage
from tests.integration.memory_harness import world

__all__ = ["cache", "redis_url", "server", "stage", "world"]
