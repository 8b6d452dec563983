"""LangGraph's store interface over the scoped memory store. It needs the extra `langgraph`; nothing else loads it."""

from adapters.langgraph.names import key_of
from adapters.langgraph.store import ScopedStore
from adapters.langgraph.values import text_of

__all__ = ["ScopedStore", "key_of", "text_of"]
