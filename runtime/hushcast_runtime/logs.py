"""Logs: structured lines on standard error, without topics, payloads, keys or addresses."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
Fields = dict[str, object]
"""What a line says besides its event, by name."""

LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
QUIET_FOR = 600  # complaints of trio's between two of ours: it has ten a second, each with a traceback
_EVENT_WIDTH = 30  # characters; fields of most lines stand below each other


def _json_line(at: str, level: Level, event: str, fields: Fields) -> str:
    return json.dumps({**fields, "event": event, "level": level, "timestamp": at}, default=repr)


def _text_line(at: str, level: Level, event: str, fields: Fields) -> str:
    shown = [f"{name}={_shown(value)}" for name, value in sorted(fields.items()) if name != "exception"]
    line = f"{at} [{level:9}] {event:{_EVENT_WIDTH}} {' '.join(shown)}".rstrip()
    return f"{line}\n{fields['exception']}" if "exception" in fields else line


def _shown(value: object) -> str:
    """Return a word as it is, and anything else so that it is seen where it ends, within one line."""
    is_word = isinstance(value, str) and value.isprintable() and not set(value) & set(" ='\"")
    return str(value) if is_word else repr(value)


def _places(error: BaseException, told: set[int]) -> Iterator[str]:
    """Yield, of an error and of those that it came from or holds, the lines of the program and the kind."""
    told.add(id(error))  # an error may come from itself, by way of another
    cause = error.__cause__ if error.__suppress_context__ else error.__context__
    held = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    if cause is not None and id(cause) not in told:
        yield from _places(cause, told)
    yield "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    for one in held:
        if id(one) not in told:
            yield from _places(one, told)


class Log:
    """What a program says while it runs: events, each with a level and with fields.

    Values of fields are shown as they show themselves: secrets hide in their `repr`.
    """

    def __init__(self, least: Level, as_json: bool) -> None:
        self.set(least, as_json)

    def set(self, least: Level, as_json: bool) -> None:
        """Say what is of at least a level, as one JSON object or one readable line each."""
        self._silent = LEVELS[: LEVELS.index(least)]
        self._render = _json_line if as_json else _text_line

    def debug(self, event: str, **fields: object) -> None:
        """Say what helps who looks for a fault."""
        self._say("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Say what an operator may want to know."""
        self._say("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Say what an operator should look at."""
        self._say("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Say what went wrong."""
        self._say("error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """Say of which kind the error is that is being handled, and where it was raised.

        Its text stays unsaid, and so do variables: a `KeyError` quotes its key, a `ValueError` its value.
        """
        error = sys.exception()
        told = "" if error is None else "\n".join(_places(error, set()))
        self._say("error", event, {**fields, "exception": told})

    def _say(self, level: Level, event: str, fields: Fields) -> None:
        if level not in self._silent:
            self._write(level, event, fields)

    def _write(self, level: Level, event: str, fields: Fields) -> None:
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        line = self._render(at, level, event, fields) + "\n"
        with suppress(OSError):  # its disk is full, or its reader gone: no reason for a daemon to end
            # Standard error as it is now: it may have been replaced, and the old one closed.
            sys.stderr.write(line)
            sys.stderr.flush()


log = Log("info", as_json=False)
"""The log of this process."""


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
    log.set(level, as_json)
    accepting = logging.getLogger("trio.serve_listeners")
    accepting.handlers, accepting.propagate = [_NoRoom()], False
    # stem logs addresses of services at low levels: none of it may reach the journal. Its level would not do:
    # stem sets that itself when it is loaded, which may be later.
    logging.getLogger("stem").disabled = True
