"""An answer cache over the Redis protocol, and the adapter through which deletion jobs reach it."""

from adapters.cache.adapter import CacheAdapter
from adapters.cache.cache import AnswerCache

__all__ = ["AnswerCache", "CacheAdapter"]
