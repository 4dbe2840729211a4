"""The deadlines of a relay's links, which each frame puts off: one task looks at all when it has to."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from hushcast_overlay.relay.session import Session


class LinkDeadlines:
    """Ends each link once its deadline has passed.

    A link that lives puts its deadline off a hundred times before it comes. So nothing is set anew for it:
    who sleeps until the earliest looks then when the next one is.
    """

    def __init__(self, spawn: Callable[..., None], now: Callable[[], float]) -> None:
        """`now` is the clock of the deadlines."""
        self._spawn = spawn
        self._now = now
        self._links: dict[Session, None] = {}  # in order: a set has another one in each run
        self._look_at = math.inf  # by `now`; no deadline is earlier
        self._sleep: trio.CancelScope | None = None

    def add(self, link: Session) -> None:
        """Watch a link from now on."""
        self._links[link] = None
        self.moved(link)

    def remove(self, link: Session) -> None:
        """Watch a link no more."""
        self._links.pop(link, None)

    def moved(self, link: Session) -> None:
        """Hear that a link's deadline is another one, perhaps an earlier one."""
        if link.deadline >= self._look_at:
            return
        self._look_at = link.deadline
        if self._sleep is None:
            self._sleep = trio.CancelScope()
            self._spawn(self._watch)
        self._sleep.deadline = self._trio_time(self._look_at)

    def _trio_time(self, moment: float) -> float:
        return trio.current_time() + (moment - self._now())

    async def _watch(self) -> None:
        while self._sleep is not None:
            with self._sleep:
                await trio.sleep_forever()
            # Sums of floats may differ in the last bit: the moment has come, whatever the clock says.
            now = max(self._now(), self._look_at)
            for link in [link for link in self._links if link.deadline <= now]:
                del self._links[link]
                link.give_up()
            self._look_at = min((link.deadline for link in self._links), default=math.inf)
            self._sleep = trio.CancelScope(deadline=self._trio_time(self._look_at)) if self._links else None
