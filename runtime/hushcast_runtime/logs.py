"""Logs: structured lines on standard error, without topics, payloads, keys or addresses."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Level = Literal["debug", "info", "warning", "error"]

QUIET_FOR = 600  # complaints of trio's between two of ours: it has ten a second, each with a traceback

log = structlog.get_logger("listeners")


class _NoRoom(logging.Handler):
    """Says in a line, about once a minute, that the machine has no file for another connection."""

    def __init__(self) -> None:
        super().__init__()
        self._heard = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Hear trio say that it will try again to accept."""
        if self._heard % QUIET_FOR == 0:
            log.warning("connections wait: too many files are open")
        self._heard += 1


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
    accepting = logging.getLogger("trio.serve_listeners")
    accepting.handlers, accepting.propagate = [_NoRoom()], False
    # stem logs addresses of services at low levels: none of it may reach the journal. Its level would not do:
    # stem sets that itself when it is loaded, which may be later.
    logging.getLogger("stem").disabled = True
