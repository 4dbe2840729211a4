"""The trusted clock of a daemon, which a wrong reading of the machine's clock does not move.

Everything in a daemon takes its time from `DaemonClock.environment`. Code that deletes because time has
passed checks `Environment.is_certain` first, and otherwise keeps its state until the next look.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.trusted_clock import AHEAD, Span, TrustedClock, published, roster_span
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

_NEVER = 0.0, 0.0, 0.0


class DaemonClock:
    """One daemon's clock; it begins with the first look."""

    def __init__(self, env: Environment, calendar: Calendar) -> None:
        """`env` has the machine's clock, as it is."""
        self._env = env
        self.calendar = calendar
        self._trusted: TrustedClock | None = None
        self._told_of_jump = False
        self._quiet = _NEVER

    def environment(self) -> Environment:
        """Return the environment with this clock in place of the machine's."""
        return dataclasses.replace(self._env, now=self.now, is_certain=self.is_certain)

    def now(self) -> float:
        """Return the Unix time to act on."""
        wall, elapsed = self._env.now(), self._env.elapsed()
        low, high, until = self._quiet
        if low < wall - elapsed < high and elapsed < until:  # asked for with every message
            return wall
        trusted, wall, elapsed = self._look()
        return trusted.look(wall, elapsed)

    def is_certain(self) -> bool:
        """Tell whether state that has expired by this time may be deleted."""
        trusted, _, elapsed = self._look()
        return trusted.is_certain(elapsed)

    def steady_for(self) -> float:
        """Return for how many seconds this time was not disputed; infinite once a witness vouched for it."""
        trusted, _, elapsed = self._look()
        return trusted.steady_for(elapsed)

    def jump(self) -> float:
        """Return the seconds by which the machine's clock is ahead of this one; 0 if it is followed."""
        trusted, wall, elapsed = self._look()
        return trusted.jump(wall, elapsed)

    @property
    def is_disputed(self) -> bool:
        """Whether the last witness disagreed with this time."""
        return self._trusted is not None and self._trusted.disputed

    def witness(self, span: Span) -> None:
        """Take a witness's statement of the time."""
        trusted, wall, elapsed = self._look()
        trusted.witness(span, wall, elapsed)
        self._look()

    def witness_roster(self, epoch: int) -> None:
        """Take the directory's newest roster as a witness: it is of this epoch."""
        self.witness(roster_span(self.calendar, epoch))

    def is_ahead(self, epoch: int) -> bool:
        """Tell whether the roster of an epoch is not due yet, by this time and by the machine's clock."""
        latest = max(self.now(), self._env.now())
        return published(self.calendar, epoch) - AHEAD * self.calendar.epoch_seconds > latest

    def describe(self) -> dict[str, Any]:
        """Return what `hushcast status` shows."""
        return {"certain": self.is_certain(), "disputed": self.is_disputed, "jump": round(self.jump())}

    def problem(self) -> str | None:
        """Return one line for the operator, `None` if there is nothing to say."""
        if jump := round(self.jump()):
            return f"the clock jumped by {jump:+} s: going on by the time before until it is confirmed"
        if self.is_disputed and not self.is_certain():
            return "the clock does not agree with the rosters or with Tor: check it"
        return None

    def _look(self) -> tuple[TrustedClock, float, float]:
        wall, elapsed = self._env.now(), self._env.elapsed()
        trusted = self._trusted
        if trusted is None:
            trusted = self._trusted = TrustedClock(self.calendar, wall, elapsed)
        trusted.look(wall, elapsed)
        jump = trusted.jump(wall, elapsed)
        if bool(jump) is not self._told_of_jump:
            self._told_of_jump = bool(jump)
            if jump:
                log.warning("the machine's clock jumped", seconds=round(jump))
            else:
                log.info("the machine's clock is followed again")
        self._quiet = _NEVER if jump else trusted.quiet()
        return trusted, wall, elapsed
