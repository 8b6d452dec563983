"""No store gives out what was forgotten: raw rows, a walk over all keys, and a search by vector of our own.

The faults bring something back behind the back of the stores.
"""

from __future__ import annotations

from typing import Final

from adapters.demo import sight
from adapters.demo.check import Check
from adapters.demo.people import (
    CLIENT,
    EXPIRING,
    EXPIRING_KEY,
    OTHER_SECRET,
    READER,
    SECRET,
    goes,
    packed,
)
from adapters.demo.stage import Stage
from adapters.demo.world import World

NEAR: Final = 0.9
"""The cosine from which on a vector is taken for one of the same text; those of two texts are far from it."""
_FACT: Final = """INSERT INTO facts SELECT tenant, user_id, project, ?1, version, fact_id || ?1, ?2, source, confirmed,
    expires, 0, 'replaced' FROM facts WHERE tenant = ?3 AND user_id = ?4 AND key = 'key-05' AND active = 1 LIMIT 1"""
# Without an origin no search of the product would show it.
_POINT: Final = """INSERT INTO vector_points SELECT tenant, id || '-again', user_id, project, NULL, NULL, NULL,
    source, revision, ?1 FROM vector_points WHERE tenant = ?2 AND user_id = ?3 LIMIT 1"""
_DRAFT: Final = """INSERT INTO drafts SELECT tenant, handle || '-again', handle, user_id, project, step, position, ?1
    FROM drafts WHERE tenant = ?2 AND user_id = ?3 LIMIT 1"""
_EXPIRED: Final = "SELECT count(*) FROM facts WHERE key = ? OR value = ?"


def _memory_gives_nothing(stage: Stage) -> tuple[bool, str]:
    rows = sight.facts(stage.world.source).values()
    told = [*rows, *((value,) for value in stage.told.current.values())]
    hits = sum(goes(row) or row[:2] == (CLIENT.tenant, CLIENT.user) for row in told)
    return hits == 0 < len(told), f"{hits} of {len(told)} facts read are of something forgotten"


def _expired_is_purged(stage: Stage) -> tuple[bool, str]:
    ((left,),) = sight.read(stage.world.source, _EXPIRED, EXPIRING_KEY, EXPIRING)
    jobs = [job for (job,) in stage.ledger("SELECT id FROM deletion_jobs WHERE trigger_kind = 'expiry'")]
    ours = jobs == [stage.told.jobs["expired"]]
    return left == 0 and ours, f"{left} rows are left; {len(jobs)} job of the clock"


def _vector_search_finds_nothing(stage: Stage) -> tuple[bool, str]:
    blobs = [row[-1] for row in sight.points(stage.world.vectors).values()]
    texts = (SECRET, OTHER_SECRET, EXPIRING)
    found = sum(sight.nearest(blobs, text) > NEAR for text in texts)
    return found == 0 < len(blobs), f"{found} of {len(texts)} texts, in {len(blobs)} vectors"


def _cache_gives_nothing(stage: Stage) -> tuple[bool, str]:
    values = [v for entry in sight.answers(stage.world.cache.client()).values() for v in entry.values()]
    hits = sum(map(goes, values))
    return hits == 0 < len(values), f"{hits} of {len(values)} values read hold a secret"


def _drafts_give_nothing(stage: Stage) -> tuple[bool, str]:
    rows = sight.drafts(stage.world.source).values()
    hits = sum(goes(row) or row[:2] == (CLIENT.tenant, CLIENT.user) for row in rows)
    return hits == 0 < len(rows), f"{hits} of {len(rows)} drafts hold a secret"


def _bring_a_fact_back(world: World) -> None:
    _insert_fact(world, "passport-again", SECRET)


def _bring_what_expired_back(world: World) -> None:
    _insert_fact(world, EXPIRING_KEY, "what has expired, in other words")


def _insert_fact(world: World, key: str, text: str) -> None:
    with sight.database(world.source) as source:
        source.execute(_FACT, (key, text, READER.tenant, READER.user))


def _bring_a_point_back(world: World) -> None:
    with sight.database(world.vectors) as vectors:
        vectors.execute(_POINT, (packed(SECRET), READER.tenant, READER.user))


def _bring_an_answer_back(world: World) -> None:
    world.cache.client().hset("cache:refilled", mapping={"answer": SECRET})


def _bring_a_draft_back(world: World) -> None:
    with sight.database(world.source) as source:
        source.execute(_DRAFT, (SECRET, READER.tenant, READER.user))


CHECKS: Final = (
    Check(name="memory_gives_nothing", look=_memory_gives_nothing, plant=_bring_a_fact_back),
    Check(name="vector_search_finds_nothing", look=_vector_search_finds_nothing, plant=_bring_a_point_back),
    Check(name="cache_gives_nothing", look=_cache_gives_nothing, plant=_bring_an_answer_back),
    Check(name="drafts_give_nothing", look=_drafts_give_nothing, plant=_bring_a_draft_back),
    Check(name="expired_is_purged", look=_expired_is_purged, plant=_bring_what_expired_back),
)
