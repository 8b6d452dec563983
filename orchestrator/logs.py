"""Logs are events with ids and counts: one JSON object a line, or a readable line on a terminal."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any, Final

import structlog

LONGEST: Final = 200


class _Foreign(logging.Handler):
    """Lines of libraries as events of ours: where, how grave, the sentence and the type of the error.

    Values stay out, those that a sentence is filled with and the text of an error: they may be somebody's data.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write a library's line as one of ours."""
        error = record.exc_info[0] if record.exc_info else None
        facts = {"error": error.__name__} if error else {}
        # Some libraries fill a sentence in before they log it; what has several lines is a dump of something.
        said = str(record.msg).splitlines()[0][:LONGEST] if record.msg else ""
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        structlog.get_logger().log(level, "library.said", library=record.name, said=said, **facts)


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
    root = logging.getLogger()
    if not any(isinstance(handler, _Foreign) for handler in root.handlers):
        root.addHandler(_Foreign(logging.WARNING))


def take_warnings() -> None:
    """Write Python's warnings as log lines: by kind, because a text may hold anything."""

    def told(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
        del message, where, more
        structlog.get_logger().warning("library.warned", kind=category.__name__)

    warnings.showwarning = told
