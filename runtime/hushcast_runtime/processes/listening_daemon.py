"""What daemons that listen at an address of their own have in common."""

from __future__ import annotations

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.epochs import Calendar
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Listener


class ListeningDaemon:
    """A daemon with a clock, counters and, once it has started, an address."""

    def __init__(self, env: Environment, calendar: Calendar, counters: Counters) -> None:
        """`env` has the machine's clock as it is."""
        self.clock = DaemonClock(env, calendar)
        self.counters = counters
        """What was counted since it started."""
        self.listener: Listener | None = None
        self._env = self.clock.environment()

    @property
    def address(self) -> Address:
        """Where others reach it."""
        assert self.listener is not None
        return self.listener.address
