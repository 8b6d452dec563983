"""Fixtures that every kind of test may ask for, and how many examples a property is tried with."""

import signal

from hypothesis import settings

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

settings.register_profile("thorough", max_examples=500)

# Started in the background by a shell, Python ignores Ctrl-C, and so do the processes that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
