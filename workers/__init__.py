"""Celery at the edge: a task is one line, a message is a hint."""
