"""The deadlines of a relay's links, which each frame puts off: all are looked at when one has come."""

from __future__ import annotations

import math
from collections.abc import Callable

from hushcast_overlay.relay.session import Session
from hushcast_runtime.timetable import Timetable


class LinkDeadlines:
    """Ends each link once its deadline has passed.

    A link that lives puts its deadline off a hundred times before it comes. So nothing is set anew for it:
    when the earliest has come is looked when the next one is.
    """

    def __init__(self, timetable: Timetable, now: Callable[[], float]) -> None:
        """`now` is the clock of the deadlines."""
        self._timetable = timetable
        self._now = now
        self._links: dict[Session, None] = {}  # in order: a set has another one in each run
        self._look_at = math.inf  # by `now`; no deadline is earlier

    def add(self, link: Session) -> None:
        """Watch a link from now on."""
        self._links[link] = None
        self.moved(link)

    def remove(self, link: Session) -> None:
        """Watch a link no more."""
        self._links.pop(link, None)

    def moved(self, link: Session) -> None:
        """Hear that a link's deadline is another one, perhaps an earlier one."""
        if link.deadline < self._look_at:
            self._set(link.deadline)

    def _set(self, moment: float) -> None:
        self._look_at = moment
        self._timetable.after(max(0.0, moment - self._now()), self._look, moment)

    def _look(self, moment: float) -> None:
        if moment != self._look_at:
            return  # an earlier one was set meanwhile
        # Sums of floats may differ in the last bit: the moment has come, whatever the clock says.
        now = max(self._now(), moment)
        for link in [link for link in self._links if link.deadline <= now]:
            del self._links[link]
            link.give_up()
        self._look_at = math.inf
        if self._links:
            self._set(min(link.deadline for link in self._links))
