"""Shards, as a daemon knows them: which relays serve a topic on a day, and which are its own relay's."""

from __future__ import annotations

import trio

from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.roster import Network, Relay
from hushcast_protocol.base.sharding import Sharding, sharding_for
from hushcast_protocol.base.wire import RelayId


class Shards:
    """The neighbourhoods of one daemon. On a day that is not cut all relays are one neighbourhood."""

    def __init__(self, rosters: RosterKeeper) -> None:
        self._rosters = rosters

    @property
    def network(self) -> Network:
        """The network."""
        return self._rosters.network

    @property
    def calendar(self) -> Calendar:
        """Its epochs and days."""
        return self._rosters.calendar

    async def fresh(self, patience: float) -> None:
        """Wait for the roster of this epoch, so many seconds at most, and for any where there is none."""
        with trio.move_on_after(patience):
            await self._rosters.fresh()
        while self._rosters.newest is None:
            await self._rosters.changed()

    def is_cut(self, day: int) -> bool:
        """Tell whether a day has more than one shard, as far as this daemon knows."""
        return self.sharding(day) is not None

    def sharding(self, day: int) -> Sharding | None:
        """Return what is known of a day's shards by the newest roster that tells; `None`: it is not cut."""
        roster = self._rosters.of_day(day)
        return sharding_for(roster.shards, day) if roster is not None else None

    def knows(self, day: int) -> bool:
        """Tell whether it is settled how a day is cut: not for tomorrow before the head that would cut it."""
        return True

    def of(self, day: int, trunk: bytes) -> Neighbourhood | None:
        """Return the relays of a topic on a day by its trunk token, if they are held; fetches nothing."""
        return self._rosters.whole

    async def find(self, day: int, trunk: bytes) -> Neighbourhood:
        """Return the relays of a topic on a day by its trunk token; fetch what is not held.

        On a day that is not cut it may be empty. Raises `Refusal`, `TransportError` or a `PeerError` where
        they cannot be had now.
        """
        return self._rosters.whole

    def own(self, day: int) -> Neighbourhood | None:
        """Return the relays that this daemon's own relay is among on a day, if they are held."""
        return self._rosters.whole

    def is_seated(self, relay: RelayId, day: int) -> bool:
        """Tell whether this daemon's own relay is listed among its neighbours of a day."""
        near = self.own(day)
        return near is not None and near.newest is not None and relay in near.newest.relays

    def relay(self, relay: RelayId) -> Relay | None:
        """Return what is known of a relay that is listed where this daemon is at home.

        That is the whole network, or the shards that its own relay was in yesterday, is in today, will be in
        tomorrow.
        """
        return self._rosters.whole.relay(relay)

    def least_difficulty(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) of stamps that others may know of such a relay."""
        return self._rosters.whole.least_difficulty(relay)

    def least_price(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) but 0 that they may know of; 0 if it asked for nothing."""
        return self._rosters.whole.least_price(relay)

    def check_relays(self) -> None:
        """Raise `Refusal` while no relay is known of, so that nothing can be subscribed to."""
        self._rosters.whole.current()

    def check_origins(self) -> None:
        """Raise `Refusal` while no relay that takes messages is known of, so that nothing is published."""
        self._rosters.whole.origins()
