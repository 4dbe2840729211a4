"""Logs: structured lines on standard error, without topics, payloads, keys or addresses."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Level = Literal["debug", "info", "warning", "error"]


def configure_logs(level: Level, as_json: bool) -> None:
    """Send log lines of at least `level` to standard error, one JSON object or one readable line each."""
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        # Standard error as it is at each line, not as it was now: it may be replaced and the old one closed.
        logger_factory=lambda *names: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    # stem logs addresses of services at low levels: none of it may reach the journal.
    logging.getLogger("stem").setLevel(logging.CRITICAL)
