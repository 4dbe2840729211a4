"""A neighbourhood: relays that belong together for trees, as the last epochs saw them."""

from __future__ import annotations

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.roster_standing import UNSEAT_AFTER, RosterStanding, Seating, follow, seating
from hushcast_protocol.base.wire import RelayId
from hushcast_runtime.environment import Environment

ROSTERS_HELD = UNSEAT_AFTER + 2  # the coming one, the running one, and those by which seats are kept before


class Neighbourhood:
    """All relays of a network, or those of one shard on one day.

    What is said of them in an epoch is a roster, whoever it was put together by.
    """

    def __init__(self, calendar: Calendar, env: Environment) -> None:
        self.calendar = calendar
        self._env = env
        self.standings: list[RosterStanding] = []
        """Of the last epochs, ascending."""

    def hold(self, standing: RosterStanding) -> None:
        """Take what is said of a later epoch than all before; forget what is too old to matter."""
        self.standings = staying(self.standings, standing)

    def next_standing(self, roster: Roster) -> RosterStanding:
        """Return where this daemon stands with the roster of a later epoch, before it holds it."""
        return follow(self.standings[-1] if self.standings else None, roster)

    @property
    def newest(self) -> Roster | None:
        """The roster with the highest epoch."""
        return self.standings[-1].roster if self.standings else None

    @property
    def held(self) -> int:
        """How many rosters in a row, up to the newest, are not acted on: they lack too many relays."""
        return self.standings[-1].held if self.standings else 0

    def current(self) -> Roster:
        """Return the roster to act on; raise `Refusal` if there is none or it lists nobody."""
        epoch = self.calendar.epoch(self._env.now())
        begun = (standing for standing in reversed(self.standings) if standing.roster.epoch <= epoch)
        standing = next(begun, self.standings[-1] if self.standings else None)
        if standing is None:
            raise Refusal("no roster yet: the directory was not reached, or waits for relays to register")
        if not standing.acted.relays:
            raise Refusal("the roster lists no relay: wait until relays have registered")
        return standing.acted

    def origins(self) -> list[Relay]:
        """Return the relays to drop at, one at least; raise `Refusal` where there is none."""
        roster = self.current()
        if not roster.origins:
            raise Refusal("no relay takes messages yet: relays are origins from their second epoch on")
        return [roster.relays[relay] for relay in roster.origins]

    def seating(self) -> Seating:
        """Return who has a seat in trees now, as subscriptions see it. There is a roster."""
        settled = self.calendar.settled(self._env.now())
        past = [standing for standing in self.standings if standing.roster.epoch <= settled]
        return seating(past or self.standings[:1])

    def relay(self, relay: RelayId) -> Relay | None:
        """Return what the newest roster that lists a relay says of it, one in force before the coming one.

        What is used of the coming one early would show when this daemon fetched it.
        """
        epoch = self.calendar.epoch(self._env.now())
        coming: Relay | None = None
        for standing in reversed(self.standings):
            if (found := standing.roster.relays.get(relay)) is not None:
                if standing.roster.epoch <= epoch:
                    return found
                coming = coming or found
        return coming

    def least_difficulty(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) that whoever holds the last roster or a later one knows of."""
        return min(self._difficulties(relay), default=0)

    def least_price(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) but 0 that these know of; 0 if a relay asked for nothing."""
        return min((bits for bits in self._difficulties(relay) if bits), default=0)

    def _difficulties(self, relay: RelayId) -> list[int]:
        epoch = self.calendar.epoch(self._env.now())
        rosters = [standing.roster for standing in self.standings]
        known = [held for held in rosters if held.epoch >= epoch - 1] or rosters[-1:]
        return [held.relays[relay].difficulty for held in known if relay in held.relays]


def staying(standings: list[RosterStanding], newest: RosterStanding) -> list[RosterStanding]:
    """Return the last `ROSTERS_HELD`, and whatever earlier one is acted on instead of one of them."""
    all_held = [*standings, newest]
    last = all_held[-ROSTERS_HELD:]
    acted = {standing.acted.epoch for standing in last}
    return [standing for standing in all_held[:-ROSTERS_HELD] if standing.roster.epoch in acted] + last
