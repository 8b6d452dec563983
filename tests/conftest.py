"""Fixtures that every kind of test may ask for, and how many examples a property is tried with."""

from hypothesis import settings

from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

settings.register_profile("thorough", max_examples=500)
