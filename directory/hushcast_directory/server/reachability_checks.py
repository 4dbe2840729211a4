"""A relay must answer at its address before it is listed; newcomers queue apart from listed ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Descriptor
from hushcast_protocol.base.wire import RelayId
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_RENEWALS = 32  # listed relays reached at once: strangers take no turn of theirs
MAX_CHECKS = 16  # newcomers reached at once: each takes a Tor circuit, and names are free
MAX_WAITING = 64  # newcomers that wait for their turn: at 16 in 20 seconds none waits longer than its client
WAIT_WITHIN = 65.0  # seconds that one waits; with `REACH_WITHIN` within the client's 90
REACH_WITHIN = 20.0  # seconds in which a relay must answer at its address; a first contact takes one to five

Reach = Callable[[Descriptor], Awaitable[None]]
"""Reaches a relay at its address; raises `Refusal` if it does not answer there."""


class ReachabilityChecks:
    """Schedules checks; a relay is checked once at a time, however many requests come in under its name."""

    def __init__(self, reach: Reach, env: Environment, note_turned_away: Callable[[], None]) -> None:
        self._reach = reach
        self._renewals = trio.CapacityLimiter(MAX_RENEWALS)
        self._newcomers = trio.CapacityLimiter(MAX_CHECKS)
        self._waiting = ConnectionSlots(MAX_WAITING, env.below, note_turned_away)
        self._under_way: set[RelayId] = set()

    async def check(self, descriptor: Descriptor, listed: bool) -> None:
        """Return once the relay was reached; raise `Refusal` if it was not, or if too many newcomers wait."""
        relay = descriptor.relay
        if relay in self._under_way:
            raise Refusal("this relay is being reached already: try again later")
        self._under_way.add(relay)
        try:
            if listed:
                async with self._renewals:
                    await self._in_time(descriptor)
            else:
                await self._await_turn()
                try:
                    await self._in_time(descriptor)
                finally:
                    self._newcomers.release()
        finally:
            self._under_way.remove(relay)

    async def _await_turn(self) -> None:
        try:
            with self._waiting.place(WAIT_WITHIN):
                await self._newcomers.acquire()
        except TransportError:
            raise Refusal("too many newcomers wait to be reached: try again later") from None

    async def _in_time(self, descriptor: Descriptor) -> None:
        try:
            with trio.fail_after(REACH_WITHIN):
                await self._reach(descriptor)
        except trio.TooSlowError:
            raise Refusal("the relay was not reached at its address in time") from None
