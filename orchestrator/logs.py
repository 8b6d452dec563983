"""Logs are events with ids and counts: one JSON object a line, or a readable line on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(form: str) -> None:
    """Set structlog up once for this process; lines go to standard error, so that output stays clean."""
    readable = form == "console" or sys.stderr.isatty()
    renderer: Any = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
