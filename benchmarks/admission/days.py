"""Days: one run, as arrays of numbers: who has a seat and who waits, day after day.

A model written apart from what authorities count by: it draws names at random instead of by a hash, and a
day has two moments, its first hour, in which newcomers are seated, and the hour after which a name comes too
late for the next day.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.admission.asked import Asked

SEATS = 2000  # of a network
WAITING = 2000  # names that may wait
HOURS = 24
AGED = 5  # the hour of a day until which a name must be known for the next
COLUMNS = (
    "run int, day int, honest int, sybils int, waiting_honest int, waiting_sybils int, "
    "seated_honest int, delay double"
)

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]


class Run:
    """One network; `honest` and `sybils` have seats, the others ask for one."""

    def __init__(self, asked: Asked, number: int) -> None:
        self._asked = asked
        self._draws = np.random.default_rng((asked.seed, number))
        self._number = number
        self.honest, self.sybils = asked.relays, 0
        self._came: Reals = np.empty(0)  # days, of those without a seat
        self._bad: Flags = np.empty(0, bool)
        self._aged: Flags = np.empty(0, bool)
        self._names = 0  # that the adversary has shown so far

    def rows(self) -> list[dict[str, float]]:
        """Return a row for each day: how it stands when the day is over."""
        return [self._day(day) for day in range(self._asked.days)]

    def _day(self, day: int) -> dict[str, float]:
        asked = self._asked
        self._come(np.full(self._fresh_names(day), float(day)), bad=True)
        lot = self._draws.random(len(self._came))
        left = self._places()
        seated, delay = self._seat(lot, (self._aged if asked.age else self._came <= day), left, day)
        hours = np.sort(self._draws.random(self._draws.poisson(asked.arriving)))
        self._come(day + hours, bad=False)
        if not asked.age:
            # Whoever comes in the day finds what the first hour left.
            ready = self._came > day
            more, waited = self._seat(self._came, ready, left - seated.sum(), day)
            seated, delay = seated + more, delay + waited
        self._wait(day)
        row = {
            "run": self._number,
            "day": day,
            "honest": self.honest,
            "sybils": self.sybils,
            "waiting_honest": int((~self._bad).sum()),
            "waiting_sybils": int(self._bad.sum()),
            "seated_honest": int(seated[0]),
            "delay": delay,
        }
        self.honest -= int(self._draws.binomial(self.honest, asked.leaving))
        return row

    def _fresh_names(self, day: int) -> int:
        fresh = self._asked.names_on(day) - self._names
        self._names += fresh
        return fresh

    def _places(self) -> int:
        asked, seats = self._asked, self.honest + self.sybils
        cap = max(asked.newcomers, seats * asked.growth // 1000) if asked.newcomers else SEATS
        return min(cap, SEATS - seats)

    def _come(self, moments: Reals, bad: bool) -> None:
        self._came = np.append(self._came, moments)
        self._bad = np.append(self._bad, np.full(len(moments), bad))
        self._aged = np.append(self._aged, np.full(len(moments), False))

    def _seat(self, lot: Reals, entitled: Flags, places: int, day: int) -> tuple[Numbers, float]:
        """Seat the first of those entitled; return how many honest ones and others, and their days."""
        ready = np.flatnonzero(entitled)
        chosen = ready[np.argsort(lot[ready])][: max(0, places)]
        bad = self._bad[chosen]
        counts = np.array([(~bad).sum(), bad.sum()])
        delay = float(np.maximum(0, day - self._came[chosen[~bad]]).sum())
        self.honest += int(counts[0])
        self.sybils += int(counts[1])
        self._keep(np.delete(np.arange(len(self._came)), chosen))
        return counts, delay

    def _wait(self, day: int) -> None:
        """Draw who waits through the day, and so may be seated on the next; the others ask again."""
        lot = self._draws.random(len(self._came))
        waits = np.full(len(lot), False)
        waits[np.argsort(lot)[:WAITING]] = True
        self._aged = waits & (self._came <= day + (AGED + 1) / HOURS)

    def _keep(self, places: Numbers) -> None:
        self._came, self._bad, self._aged = self._came[places], self._bad[places], self._aged[places]
