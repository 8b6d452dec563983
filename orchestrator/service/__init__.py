"""Use cases: one verb a file, no framework."""
