"""Keeping links: those to the next hops of leases stay open, so that no message has to wait for a circuit.

A day's are opened in the last epoch before it: earlier, a relay would keep links for two days at once.
"""

from __future__ import annotations

import itertools

from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.relay.peers import Peers
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import is_box
from hushcast_runtime.context import Context

MAX_KEPT = 512  # links for one day; each costs circuits at both ends
SIGN_OF_LIFE = 120.0  # seconds between two looks at a link; idle ones end after 300
PREPARE = 2.0  # seconds after an install until its next hop is dialled, if nobody else has opened the link
CONNECT_WITHIN = 30.0  # seconds in which a link opens, or is left for a while
LEFT_FOR = 300.0  # seconds of that while
EARLIEST_AHEAD, LATEST_AHEAD = 1.0, 0.25  # epochs before a day at which its links are opened


class KeptLinks:
    """Keeps the links of one relay."""

    def __init__(self, leases: LeaseStore, peers: Peers, calendar: Calendar, context: Context) -> None:
        self._leases = leases
        self._peers = peers
        self._calendar = calendar
        self._env = context.env
        self._spawn = context.spawn
        self._timetable = context.timetable
        self._left: dict[Hop, float] = {}  # next hops that did not answer, and when
        self._prepares = False
        self._ahead = context.env.uniform(LATEST_AHEAD, EARLIEST_AHEAD)
        """Epochs before each day at which this relay opens its links: all relays at once would be a burst."""

    def keep(self) -> None:
        """Show signs of life on links, and open those that are not there, now and again and again."""
        self._look()
        pause, wait = SIGN_OF_LIFE * self._env.uniform(0.75, 1.0), self._turn() - self._env.now()
        self._timetable.after(min(pause, wait) if wait > 0 else pause, self.keep)

    def prepare(self, hop: Hop) -> None:
        """Have the link to the next hop of a lease that came opened soon.

        As a rule it is there: who passed the parcel on is the next hop.
        """
        if not (self._prepares or self._peers.is_linked(hop)):
            self._prepares = True
            # Leases come in company.
            self._timetable.after(PREPARE * self._env.uniform(0.5, 1.0), self._prepare)

    def _prepare(self) -> None:
        self._prepares = False
        self._look()

    def _look(self) -> None:
        now = self._env.elapsed()
        self._left = {hop: at for hop, at in self._left.items() if now - at < LEFT_FOR}
        next_hops = self._leases.book.next_hops
        chosen = [
            self._to_be_opened([hop for hop in next_hops((day,)) if not is_box(hop)]) for day in self._days()
        ]
        for hop in dict.fromkeys(itertools.chain.from_iterable(chosen)):
            self._spawn(self._open, hop)

    def _turn(self) -> float:
        """Return the moment from which the links of the next day are opened."""
        midnight = self._calendar.day_start(self._calendar.day(self._env.now()) + 1)
        return midnight - self._ahead * self._calendar.epoch_seconds

    def _days(self) -> range:
        """Return the days whose links are kept now: the running one, and at its end the next."""
        now = self._env.now()
        today = self._calendar.day(now)
        return range(today, today + 1 + (self._turn() <= now))

    def _to_be_opened(self, hops: list[Hop]) -> list[Hop]:
        """Ping those of a day that are linked, and choose as many of the others as there is room for."""
        # Links that are there come first: they must not give way to next hops that nobody ever reached.
        linked = [hop for hop in hops if self._peers.is_linked(hop)]
        for hop in self._env.sample(linked, MAX_KEPT):
            self._peers.ping(hop)
        there = set(linked)
        others = [hop for hop in hops if hop not in there and hop not in self._left]
        return self._env.sample(others, max(0, MAX_KEPT - len(linked)))

    async def _open(self, hop: Hop) -> None:
        if not await self._peers.connect(hop, CONNECT_WITHIN):
            self._left[hop] = self._env.elapsed()
