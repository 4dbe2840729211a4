"""Arrivals: hands what comes from a box in to its route, if its day is taken still."""

from __future__ import annotations

from hushcast_overlay.routes.route import OverlayRoute
from hushcast_protocol.base import observations
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.context import Context

HOSTS_DAYS = 1  # days that a host keeps a message beyond those on which relays take it


class Arrivals:
    """What comes in for the routes of one daemon."""

    def __init__(self, calendar: Calendar, context: Context) -> None:
        self._calendar = calendar
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer

    async def take(self, route: OverlayRoute, messages: list[Message], host: RelayId) -> None:
        """Take messages that a host brings into the inbox; durable on return.

        Raises a `PeerError` if one is malformed.
        """
        for message in messages:
            check_message(message)
            route.coverage.arrived(message.id)
            labels = int.from_bytes(message.trail, "little").bit_count()
            self._tracer.observe(
                observations.Arrived(message.id, message.tokens, host, labels, len(message.body))
            )
        await route.take([one for one in messages if self._is_taken(route, one)])

    def is_timely(self, day: int) -> bool:
        """Tell whether what is of a day is taken: what keepers had comes by a host, too."""
        open_days = self._calendar.open_days(self._env.now())
        return day in range(open_days.start - MAX_DAYS_KEPT, open_days.stop)

    def _is_taken(self, route: OverlayRoute, message: Message) -> bool:
        """Tell whether a message is taken: by an uncertain clock, those of all days with a tree.

        To refuse them would lose them, and not to confirm them would show hosts that the time is wrong.
        """
        if route.wanted.knows(message.id) or self.is_timely(message.day):
            return True
        if not self._env.is_certain() and route.on(message.day):
            return True
        self._counters.add("refused_day")
        return False
