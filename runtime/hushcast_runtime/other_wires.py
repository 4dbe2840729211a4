"""Other wires: whom a daemon met and cannot talk to, as they speak another wire than it does."""

from __future__ import annotations

import math
from collections.abc import Callable

from hushcast_protocol.base.findings import Finding, warning
from hushcast_protocol.base.versions.wires import OtherWire, WireRange
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log

TOLD_FOR = 3 * 3600.0
"""Seconds; relays and directories try again within an hour, and it is to be seen that they do no more."""


class OtherWires:
    """The last of them. Strangers can pretend to be one: nothing acts on it."""

    def __init__(self, elapsed: Callable[[], float], counters: Counters) -> None:
        """`elapsed` tells seconds of a clock that nobody sets; `counters` have `links_of_other_wires`."""
        self._elapsed = elapsed
        self._counters = counters
        self._met: OtherWire | None = None
        self._at = -math.inf
        self._logged_at = -math.inf

    def note(self, error: Exception) -> None:
        """Note why a link did not come about, if it was for that; the log tells of it now and then."""
        if not isinstance(error, OtherWire):
            return
        self._counters.add("links_of_other_wires")
        self._met, self._at = error, self._elapsed()
        if self._at - self._logged_at >= TOLD_FOR:
            self._logged_at = self._at
            log.warning("a link did not come about: the other end speaks another wire", reason=str(error))

    @property
    def met(self) -> WireRange | None:
        """What the last of them speaks, as long as that is news."""
        is_news = self._met is not None and self._elapsed() - self._at < TOLD_FOR
        return self._met.theirs if self._met is not None and is_news else None

    def describe(self) -> str | None:
        """Return that in words for a status, `None` where it is no news."""
        return None if self.met is None else str(self.met)

    def examine(self) -> list[Finding]:
        """Tell of them, if there are any."""
        if self._met is None or self.met is None:
            return []
        return [warning("wire", self._met.found("a peer"), self._met.way_out)]
