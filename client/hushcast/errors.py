"""What a program that talks to a daemon can meet; every error is a `HushcastError`."""

from __future__ import annotations

from hushcast_protocol.base.errors import HushcastError, Refusal, UsageError

__all__ = [
    "HushcastError",
    "NoDaemon",
    "OtherVersion",
    "Refusal",
    "TimedOut",
    "UsageError",
    "Waiting",
]


class NoDaemon(HushcastError):
    """No daemon listens at the socket."""


class ConnectionEnded(NoDaemon):
    """The daemon went away in the middle."""


class OtherVersion(NoDaemon):
    """What listens at the socket speaks another version of this program's words."""


class Waiting(HushcastError):
    """No relay has given a receipt so far; the message stays in the outbox, so do not publish it again."""


class TimedOut(HushcastError):
    """The time that the caller gave has passed."""


class Starting(Refusal):
    """The daemon is not up yet."""


class NoSuchCursor(Refusal):
    """No message of the subscription had this cursor yet."""
