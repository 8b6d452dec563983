"""The answer cache and its adapter, over the Redis protocol."""

from adapters.cache.adapter import CacheAdapter
from adapters.cache.answers import AnswerCache

__all__ = ["AnswerCache", "CacheAdapter"]
