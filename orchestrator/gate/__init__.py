"""Tombstones: what was forgotten is not learned again."""
