"""Shards, as a daemon knows them: which relays serve a topic on a day, and which are its own relay's."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from hushcast_directory.client.roster_source import RosterSource
from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.guide_book import GuideBook
from hushcast_overlay.shards.kept_shard import KeptShard
from hushcast_overlay.shards.own_shards import OwnShards
from hushcast_overlay.shards.shard_fetcher import ShardFetcher
from hushcast_overlay.shards.shard_keeper import ShardKeeper
from hushcast_overlay.shards.shard_server import ShardServer
from hushcast_protocol.authorities.beacon import DRAWN
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.epochs import EPOCHS_A_DAY, Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.base.roster import Network, Relay
from hushcast_protocol.base.sharding import Sharding, sharding_for
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.assignment import copies_of_topic, shard_of_topic
from hushcast_protocol.shards.candidates import CandidateList
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store

GIVEN_UP = 18
"""Epochs of a day after which, where no roster told how tomorrow is cut, it is taken to be cut like today."""


class Shards:
    """The neighbourhoods of one daemon. On a day that is not cut all relays are one neighbourhood."""

    def __init__(
        self,
        us: RelayId | None,
        rosters: RosterKeeper,
        source: RosterSource,
        fetching: ShardFetcher,
        env: Environment,
        store: Store,
        counters: Counters,
    ) -> None:
        """`us` is this daemon's own relay, if it runs one; a client serves nothing."""
        self._rosters = rosters
        self._source = source
        self._env = env
        self._fetching = fetching
        self._guides = GuideBook(self._fetching, env)
        self.serving = ShardServer(store, counters)
        """What this daemon's own relay shows to strangers."""
        self._keeper = ShardKeeper(us, rosters, self._fetching, self._guides, self.serving, env, counters)
        self._own: OwnShards | None = None
        if us is not None:
            self._own = OwnShards(
                us, rosters, self._keeper, self._fetching, self.serving, self._cuts_wanted, env
            )
        self._us = us

    @property
    def network(self) -> Network:
        """The network."""
        return self._rosters.network

    @property
    def keeping(self) -> KeepingRule:
        """The network's rule for what its relays keep."""
        return self._rosters.keeping

    @property
    def calendar(self) -> Calendar:
        """Its epochs and days."""
        return self._rosters.calendar

    @property
    def today(self) -> int:
        """The running day."""
        return self.calendar.day(self._env.now())

    async def load(self) -> None:
        """Take up what this daemon's own relay held before a restart; the rosters were loaded."""
        if self._own is not None:
            await self.serving.load()
            await self._keeper.load()

    def begin(self, context: Context) -> None:
        """Fetch and keep fresh what is wanted, from the first cut on, while the daemon lives."""

        self._rosters.once(self._has_anything, self._start, context)

    def _start(self, context: Context) -> None:
        self._keeper.begin(context)
        if self._own is not None:
            context.spawn(self._own.begin, context.spawn)
        context.spawn(self._forget_lapsed, context)

    def _has_anything(self) -> bool:
        """Tell whether a roster told of a cut, or something is left of one before a restart."""
        return self.serving.has_parts() or any(
            one.bits for roster in self._rosters.rosters() for one in roster.shards
        )

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
        """Tell whether it is settled how a day is cut: not for tomorrow before the head that would cut it.

        Where that is missed, tomorrow is taken to be like today for its last quarter. Of a day that is whole
        after one that is cut nothing is known before its first roster: no other has its relays.
        """
        today = self.calendar.day(self._env.now())
        if day <= today or self._source.terms() is None:
            return True  # or a directory alone, which cuts nothing
        newest = self._rosters.newest
        if not self.is_cut(day) and self.is_cut(today):
            return newest is not None and newest.epoch >= day * EPOCHS_A_DAY
        if newest is not None and newest.epoch >= (day - 1) * EPOCHS_A_DAY + DRAWN:
            return True
        return self.calendar.epoch(self._env.now()) >= (day - 1) * EPOCHS_A_DAY + GIVEN_UP

    def copies(self, day: int, trunk: bytes, width: int) -> tuple[int, ...]:
        """Return the copies of a topic of some width that have shards of their own on a day: 1 to 2^width."""
        sharding = self.sharding(day)
        return (0,) if sharding is None else copies_of_topic(trunk, width, sharding.bits)

    def of(self, day: int, trunk: bytes, copy: int = 0) -> Neighbourhood | None:
        """Return the relays of a topic on a day by its trunk token, if they are held; fetches nothing.

        `copy` says which of the 2^width shards of a wide topic; all are one on a day that is not cut. What is
        returned has a roster at least.
        """
        sharding = self.sharding(day)
        if sharding is None:
            return self._whole()
        kept = self._keeper.held(sharding, shard_of_topic(trunk, copy, sharding.bits))
        return kept.near if kept is not None else None

    async def find(self, day: int, trunk: bytes, copy: int = 0) -> Neighbourhood:
        """Return the relays of a topic on a day by its trunk token; fetch what is not held.

        `copy` is as with `of`. What is returned has a roster at least. Raises `Refusal`, `TransportError` or
        a `PeerError` where none can be had now.
        """
        sharding = self.sharding(day)
        if sharding is None:
            if (whole := self._whole()) is None:
                raise Refusal("no roster yet: the directory was not reached, or waits for relays to register")
            return whole
        return (await self._keeper.find(sharding, shard_of_topic(trunk, copy, sharding.bits))).near

    async def candidates(self, told: CandidateRoot, shard: int) -> CandidateList:
        """Return who may be a keeper in a shard of a day, as authorities show it; raises as `find`."""
        return await self._fetching.candidates(told, shard)

    def own_number(self, day: int) -> int | None:
        """Return in which shard this daemon's own relay is on a day by its name; `None` for a client."""
        sharding = self.sharding(day)
        if sharding is None:
            return None if self._us is None else 0
        return self._keeper.own_shard(sharding)

    def own(self, day: int) -> Neighbourhood | None:
        """Return the relays that this daemon's own relay is among on a day, if they are held.

        On a day that is cut there are none for a client, and for a relay that got its seat after the cut.
        """
        sharding = self.sharding(day)
        if sharding is None:
            return self._whole()
        kept = self._own_kept(sharding)
        return kept.near if kept is not None and self._us in kept.seated else None

    def is_seated(self, relay: RelayId, day: int) -> bool:
        """Tell whether this daemon's own relay is listed among its neighbours of a day."""
        near = self.own(day)
        return near is not None and near.newest is not None and relay in near.newest.relays

    def relay(self, relay: RelayId) -> Relay | None:
        """Return what is known of a relay that is listed where this daemon is at home.

        That is the whole network, or the shards that its own relay was in yesterday, is in today, will be in
        tomorrow; what is known of today goes first.
        """
        for near in self._at_home():
            if (found := near.relay(relay)) is not None:
                return found
        return None

    def least_difficulty(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) of stamps that others may know of such a relay."""
        known = [near.least_difficulty(relay) for near in self._at_home() if near.relay(relay) is not None]
        return min(known, default=0)

    def least_price(self, relay: RelayId) -> int:
        """Return the lowest difficulty (bits) but 0 that they may know of; 0 if it asked for nothing."""
        known = [near.least_price(relay) for near in self._at_home()]
        return min((bits for bits in known if bits), default=0)

    @property
    def wire(self) -> NetworkWire | None:
        """What the network speaks, as far as anybody told."""
        return self._rosters.wire

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._rosters.manner

    def check_relays(self) -> None:
        """Raise `Refusal` while no relay is known of, so that nothing can be subscribed to."""
        if not self._has_cut():
            self._rosters.whole.current()

    def check_origins(self) -> None:
        """Raise `Refusal` while no relay that takes messages is known of, so that nothing is published."""
        if not self._has_cut():
            self._rosters.whole.origins()

    def _has_cut(self) -> bool:
        """Tell whether today is cut, or the day of the newest roster: the first may be of tomorrow."""
        newest = self._rosters.newest
        days = {self.calendar.day(self._env.now())}
        days |= set() if newest is None else {newest.epoch // EPOCHS_A_DAY}
        return any(map(self.is_cut, days))

    def _whole(self) -> Neighbourhood | None:
        return self._rosters.whole if self._rosters.whole.standings else None

    def _own_kept(self, sharding: Sharding) -> KeptShard | None:
        shard = self._keeper.own_shard(sharding)
        return self._keeper.held(sharding, shard) if shard is not None else None

    def _at_home(self) -> Iterator[Neighbourhood]:
        """Return the neighbourhoods of today, tomorrow and, until it lapses, yesterday: each once."""
        now = self._env.now()
        today = self.calendar.day(now)
        seen: list[Neighbourhood] = []
        if (near := self.own(today)) is not None:  # who asks seldom wants another
            seen.append(near)
            yield near
        for day in (today + 1, *self.calendar.open_days(now)):
            near = self.own(day)
            if near is not None and near not in seen:
                seen.append(near)
                yield near

    def _cuts_wanted(self) -> dict[int, Sharding]:
        """Return the cuts that count now, by their days: for yesterday until it lapses, today, tomorrow."""
        now = self._env.now()
        days = {*self.calendar.open_days(now), self.calendar.day(now) + 1}
        told = [sharding for day in days if (sharding := self.sharding(day)) is not None]
        return {sharding.day: sharding for sharding in told}

    async def _forget_lapsed(self, context: Context) -> None:
        await self._rosters.fresh()  # what a restart took up may have lapsed meanwhile
        if self._env.is_certain() and self._rosters.newest is not None:
            staying = self._cuts_wanted().keys()
            self._keeper.forget(staying)
            self._guides.forget(staying)
            self._fetching.forget(staying)
            await self.serving.forget(staying)
        again = self.calendar.next_middle(self._env.now())
        context.timetable.at(again, context.spawn, self._forget_lapsed, context)


assert DRAWN < GIVEN_UP < EPOCHS_A_DAY
