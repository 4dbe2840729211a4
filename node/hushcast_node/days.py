"""Days: whether a message belongs to one that is over or to come, as far as this daemon knows the time."""

from __future__ import annotations

from hushcast_protocol.epochs import Calendar
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError


def is_closed(calendar: Calendar, env: Environment, day: int) -> bool:
    """Tell whether a message of a day is to be thrown away.

    Raises `TransportError` where it would be, but the time is not certain: whoever brought it is to keep it.
    """
    if day in calendar.open_days(env.now()):
        return False
    if not env.is_certain():
        raise TransportError("a message of another day, and the clock is not certain")
    return True
