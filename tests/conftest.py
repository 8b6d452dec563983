"""Fixtures that every kind of test may ask for, and how many examples a property is tried with."""

import os
import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

settings.register_profile("thorough", max_examples=500)

# Started in the background by a shell, Python ignores Ctrl-C, and so do the processes that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of processes: where the environment keeps bytecode out, each would compile all of ours anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


MASK = os.umask(0)
os.umask(MASK)


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Take back what a command that ran in this process has set for all of it: where log lines go, and the umask.

    Before the test as well: fixtures of a module come before this one, and run commands, too.
    """
    _take_back()
    yield
    _take_back()


def _take_back() -> None:
    os.umask(MASK)
    structlog.reset_defaults()
