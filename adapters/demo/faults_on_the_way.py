"""The faults that act while the story runs, each behind the back of the code that it is about."""

from __future__ import annotations

from typing import Final

from adapters.demo import sight
from adapters.demo.people import CLIENT
from adapters.demo.world import World
from orchestrator import InvalidRequest

_NEVER_TRIED: Final = """UPDATE deletion_units SET status = 'pending', attempts = 0, lease_owner = NULL,
    lease_until_us = NULL, deadline_us = NULL, next_attempt_at_us = 0
    WHERE adapter = 'cache' AND phase = 'erase' AND status != 'done'"""
_CONFIRMED_NO_MORE: Final = "UPDATE facts SET confirmed = 0 WHERE tenant = ? AND user_id = ? AND key = 'key-05'"


def forget_the_attempt(world: World) -> None:
    """Let the killed worker's claim look as if it had never been: a task that kills its worker would come for ever."""
    with sight.database(world.ledger) as ledger:
        changed = ledger.execute(_NEVER_TRIED).rowcount
    _changed(changed == 1)


def change_what_is_held(world: World) -> None:
    """Change something that the hold covers, as a job would that does not ask for holds."""
    with sight.database(world.source) as source:
        changed = source.execute(_CONFIRMED_NO_MORE, (CLIENT.tenant, CLIENT.user)).rowcount
    _changed(changed > 0)


def _changed(something: bool) -> None:  # noqa: FBT001 - a question that was asked just now
    if not something:
        message = "there was nothing to plant the fault in: it would show nothing"
        raise InvalidRequest(message, field="break")
