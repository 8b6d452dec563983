"""A vector index, and the adapter through which deletion jobs reach it."""

from adapters.vector.adapter import VectorAdapter
from adapters.vector.index import Answer, Hit, Point, Stored, VectorIndex

__all__ = ["Answer", "Hit", "Point", "Stored", "VectorAdapter", "VectorIndex"]
