"""Publishing: signs rosters on schedule while the clock can be trusted; revokes those of a wrong clock."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import structlog
import trio

from hushcast_directory.registry import Registry
from hushcast_protocol.base.clocks import FOLLOWED_AFTER
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.environment import LOOK_EVERY

_ANY_TIME = -math.inf, math.inf

log = structlog.get_logger("directory")


class Publishing:
    """Publishes the rosters of one registry."""

    def __init__(
        self, clock: DaemonClock, registry: Registry, prepare: Callable[[], Awaitable[None]]
    ) -> None:
        """`prepare` is called before each roster is signed."""
        self._prepare = prepare
        self._clock = clock
        self._registry = registry
        self._registered = trio.Event()
        self._waits: str | None = None

    @property
    def problem(self) -> str | None:
        """One line for the operator of what is wrong with the clock; `None`: nothing."""
        return self._waits or self._clock.problem()

    @property
    def doubt(self) -> str | None:
        """The same."""
        return self.problem

    @property
    def silence(self) -> str | None:
        """Nothing: it knows of no backup."""
        return None

    @property
    def epoch(self) -> int | None:
        """The epoch of the newest roster, `None` before the first."""
        return None if self._registry.newest is None else self._registry.newest.epoch

    @property
    def relays(self) -> int:
        """How many relays it lists."""
        return 0 if self._registry.newest is None else len(self._registry.newest.relays)

    def note_registered(self) -> None:
        """Look at once whether enough relays have registered for the first roster."""
        self._registered.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        self._begin()
        while True:
            now = self._clock.now()
            if self._is_certain(now) and (ahead := await self._registry.take_back(now)):
                log.error("rosters for a time to come are taken back", epoch=min(ahead), count=len(ahead))
            due = self._registry.due(now)
            is_due = due is not None and due <= now
            self._wait_because(self._doubt(is_due))
            if is_due and self._waits is None:
                await self._prepare()
                roster = await self._registry.publish(now)
                log.info("roster published", epoch=roster.epoch, relays=len(roster.relays))
                continue
            self._registered = trio.Event()
            pause = min(LOOK_EVERY, self._registry.calendar.lead)
            with trio.move_on_after(pause if due is None or is_due else min(pause, due - now)):
                await self._registered.wait()

    def _begin(self) -> None:
        """Compare with the newest roster: it tells until when this directory was at work."""
        newest = self._registry.newest
        if newest is not None:
            self._clock.witness_roster(newest.epoch)
        elif not self._clock.is_disputed:  # a network begins with the time that is shown
            self._clock.witness(_ANY_TIME)

    def _is_certain(self, now: float) -> bool:
        """Tell whether rosters for a time to come were signed by a wrong clock: this one is right."""
        if self._clock.is_certain():
            return True
        # A clock that is wrong now is unlikely to show a time for which no roster was signed.
        followed_after = FOLLOWED_AFTER * self._clock.calendar.epoch_seconds
        return self._registry.has_leapt(now) and self._clock.steady_for() >= followed_after

    def _doubt(self, is_due: bool) -> str | None:
        """Return why no roster is signed at this time, though one may be due."""
        newest = self._registry.newest
        if newest is not None and self._clock.is_ahead(newest.epoch):
            return "no roster is signed: the newest is for a time to come, check the clock"
        if is_due and self._clock.steady_for() < self._registry.calendar.lead:
            return "no roster is signed yet: the clock has moved far since the last one, check it"
        return None

    def _wait_because(self, doubt: str | None) -> None:
        if doubt is not None and doubt != self._waits:
            log.warning("no roster is signed", reason=doubt)
        self._waits = doubt
