"""The trusted clock: which time to act on when the machine's clock jumps, and whether it may expire state.

The difference of wall clock and monotonic clock is the offset, which is constant unless somebody sets the
wall clock. While the offset changes little, the wall clock is followed. When it jumps, a time that a witness
vouched for goes on as before, until a witness vouches for the new time, or until the new time has lasted for
long without a witness against it. Witnesses are the directory (its newest roster) and Tor (its consensus).
"""

from __future__ import annotations

import math

from hushcast_protocol.base.epochs import Calendar

STEADY = 0.25  # epochs by which an offset may change at once; clocks may be `Calendar.grace` apart
FOLLOWED_AFTER = (
    2.0  # epochs after which a jump is taken that no witness spoke of: rosters come once in an epoch
)
CERTAIN = 24.0  # epochs after which such a time may delete: a wrong clock cuts Tor off, and so the witnesses
AHEAD = 0.5  # epochs by which a roster may be ahead of the clock that looks at it

Span = tuple[float, float]
"""The first and the last moment (Unix seconds) that a witness finds possible."""


def published(calendar: Calendar, epoch: int) -> float:
    """Return when the roster of an epoch is published, in Unix seconds."""
    return calendar.epoch_start(epoch) - calendar.lead


def roster_span(calendar: Calendar, epoch: int) -> Span:
    """Return when the roster of an epoch is the newest, as far as clocks agree."""
    apart = STEADY * calendar.epoch_seconds
    return published(calendar, epoch) - apart, published(calendar, epoch + 1) + apart


class TrustedClock:
    """Decides on the time to act on; `wall` is Unix time as shown, `elapsed` seconds that nobody sets."""

    def __init__(self, calendar: Calendar, wall: float, elapsed: float) -> None:
        """Begin with the time shown, which nobody has vouched for yet."""
        self._steady = STEADY * calendar.epoch_seconds
        self._followed_after = FOLLOWED_AFTER * calendar.epoch_seconds
        self._certain = CERTAIN * calendar.epoch_seconds
        self._offset = self._shown = wall - elapsed  # of the time acted on, and of the time shown
        self._shown_since = self._steady_since = elapsed
        self._vouched = False
        self.disputed = False
        """Whether the last witness knew another time than the one acted on, and than the one shown."""

    def look(self, wall: float, elapsed: float) -> float:
        """Return the Unix time to act on."""
        shown = wall - elapsed
        if self._is_jump(shown) and not self.is_certain(elapsed):
            # The time acted on has no better claim than the one shown now.
            self._take(shown, elapsed)
            self._steady_since = elapsed
        if abs(shown - self._shown) > self._steady:
            self._shown, self._shown_since = shown, elapsed
        elif elapsed - self._shown_since >= self._followed_after:
            if self._is_jump(shown):
                self._vouched, self._steady_since = False, elapsed
            self._take(shown, elapsed)
        return wall if not self._is_jump(shown) else elapsed + self._offset

    def quiet(self) -> tuple[float, float, float]:
        """Return between which offsets, and until when by `elapsed`, `look` returns the time as shown."""
        low, high = sorted((self._offset, self._shown))
        return high - self._steady, low + self._steady, self._shown_since + self._followed_after

    def jump(self, wall: float, elapsed: float) -> float:
        """Return the seconds by which the clock is ahead of the time acted on (below 0: behind); 0: none."""
        shown = wall - elapsed
        return shown - self._offset if self._is_jump(shown) else 0.0

    def witness(self, span: Span, wall: float, elapsed: float) -> None:
        """Hear when a witness believes it to be: it settles a jump at once, or keeps it from being taken.

        Where it finds both times possible the one shown is taken, so that a clock can be set right; but not
        if it knows the time less well than that.
        """
        now = self.look(wall, elapsed)
        knows_well = span[1] - span[0] <= self._followed_after
        shown, acted = span[0] <= wall <= span[1], span[0] <= now <= span[1]
        self.disputed = not shown and not acted
        if self.disputed:
            self._steady_since = elapsed
        else:
            self._vouched = True
        if shown and (knows_well or not acted):
            self._take(wall - elapsed, elapsed)
        elif not shown:
            self._shown_since = elapsed

    def steady_for(self, elapsed: float) -> float:
        """Return for how many seconds the time acted on was not disputed; infinite once vouched for."""
        return math.inf if self._vouched else elapsed - self._steady_since

    def is_certain(self, elapsed: float) -> bool:
        """Tell whether what is too old by the time acted on may be deleted."""
        return self.steady_for(elapsed) >= self._certain

    def _is_jump(self, shown: float) -> bool:
        return abs(shown - self._offset) > self._steady

    def _take(self, shown: float, elapsed: float) -> None:
        self._offset = self._shown = shown
        self._shown_since = elapsed
