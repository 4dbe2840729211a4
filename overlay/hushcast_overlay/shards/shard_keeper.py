"""The shard keeper: holds the neighbourhoods of the shards that are wanted, and keeps each fresh on its own.

A shard costs its slice once, and a leaf each epoch. Each has moments of its own, drawn anew for each epoch:
nothing shows that two of them are wanted by one daemon. What fails is tried again; what is held goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext, suppress

import trio

from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.guide_book import GuideBook
from hushcast_overlay.shards.kept_shard import KeptShard, telling
from hushcast_overlay.shards.shard_fetcher import ShardContact, ShardFetcher, asked_relay
from hushcast_overlay.shards.shard_server import ShardServer, Shown
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.shard_requests import AskLeaf, AskSlice, ShardRequest
from hushcast_protocol.shards.slices import Leaf, Shard, read_leaf
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log
from hushcast_runtime.retry import retry
from hushcast_runtime.transports.base import TransportError

MAX_SHARDS = 544
"""Neighbourhoods held: 256 subscriptions of today and tomorrow, 32 for publications; 0.5 MB each."""
MAX_FETCHING = 16  # fetches of one daemon at once, those for its own relay apart
FETCHED_WITHIN = 0.5
"""Epochs from an epoch's beginning in which its leaves are fetched: all have them when it is settled."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds before the next attempt to get a leaf


FAILURES = (TransportError, PeerError, Refusal)


class ShardKeeper:
    """The shards that one daemon holds."""

    def __init__(
        self,
        us: RelayId | None,
        rosters: RosterKeeper,
        fetching: ShardFetcher,
        guides: GuideBook,
        serving: ShardServer,
        env: Environment,
        counters: Counters,
    ) -> None:
        """`us` is this daemon's own relay, if it runs one; `serving` is what that shows to strangers."""
        self._us = us
        self._rosters = rosters
        self._calendar = rosters.calendar
        self._fetching = fetching
        self._guides = guides
        self._serving = serving
        self._env = env
        self._counters = counters
        self._kept: dict[tuple[int, int], KeptShard] = {}
        # By beacon and bits: each connection and parcel asks several times.
        self._own: dict[tuple[bytes, int], int] = {}
        self._fetches = FewAtOnce(MAX_FETCHING)  # of what is not its own
        self._context: Context | None = None

    def begin(self, context: Context) -> None:
        """Fetch what is asked for from now on, and keep it fresh."""
        self._context = context
        for kept in self._kept.values():
            context.spawn(self._keep, kept, context)
        self._rosters.each(lambda: self._plan_waiting(context))

    async def load(self) -> None:
        """Take up the shards of this daemon's own relay as they were before a restart."""
        cuts = {one.day: one for head in self._rosters.rosters() for one in head.shards if one.bits}
        for sharding in cuts.values():
            if (shard := self.own_shard(sharding)) is not None:
                kept = self._new(sharding, shard)
                try:
                    await self._restore(kept)
                except PeerError as error:
                    log.warning("a shard kept from before is not used", reason=str(error))
                    continue
                if kept.leaf is not None:
                    self._kept[kept.day, kept.number] = kept

    def own_shard(self, sharding: Sharding) -> int | None:
        """Return in which shard of a cut our own relay is, if it has a seat; `None` for a client."""
        if self._us is None:
            return None
        cut = sharding.beacon, sharding.bits
        if (shard := self._own.get(cut)) is None:
            shard = self._own[cut] = shard_of_relay(sharding.beacon, self._us, sharding.bits)
        return shard

    def held(self, sharding: Sharding, shard: int) -> KeptShard | None:
        """Return a shard if it is held."""
        kept = self._kept.get((sharding.day, shard))
        return kept if kept is not None and kept.leaf is not None else None

    async def find(self, sharding: Sharding, shard: int) -> KeptShard:
        """Return a shard, fetched if it is not held; raise `TransportError` where it cannot be had now."""
        kept = self._kept.get((sharding.day, shard)) or self._begin(sharding, shard)
        kept.used = self._env.elapsed()
        await kept.tried.wait()
        if kept.problem is not None:
            raise TransportError(f"the relays of a shard cannot be had now: {kept.problem}")
        return kept

    def forget(self, staying: Collection[int]) -> None:
        """Drop the shards of all cuts but those for these days."""
        self._own.clear()  # those of now are computed again
        for kept in [kept for kept in self._kept.values() if kept.day not in staying]:
            self._drop(kept)

    def _new(self, sharding: Sharding, shard: int) -> KeptShard:
        near = Neighbourhood(self._calendar, self._env)
        is_own = shard == self.own_shard(sharding)
        return KeptShard(sharding.day, shard, is_own, near, self._env.elapsed())

    def _begin(self, sharding: Sharding, shard: int) -> KeptShard:
        """Begin to hold a shard; the one that was longest not asked for gives way."""
        others = [kept for kept in self._kept.values() if not kept.is_own]
        if len(others) >= MAX_SHARDS:
            self._drop(min(others, key=lambda kept: kept.used))
        kept = self._kept[sharding.day, shard] = self._new(sharding, shard)
        assert self._context is not None, "a cut is known: `begin` was called"
        self._context.spawn(self._keep, kept, self._context)
        return kept

    def _drop(self, kept: KeptShard) -> None:
        kept.scope.cancel()
        if self._kept.get((kept.day, kept.number)) is kept:
            del self._kept[kept.day, kept.number]

    async def _restore(self, kept: KeptShard) -> None:
        """Read a shard from what is served of it, all of it checked again; raises a `PeerError`."""
        shown = self._serving.slice(kept.day, kept.number)
        for head, sharding in telling(self._rosters.rosters(), kept.day):
            part = self._serving.leaf(head.epoch, kept.day, kept.number)
            if shown is None or part is None:
                continue
            leaf = read_leaf(part.leaf, part.path, sharding, kept.number)
            if kept.leaf is None:
                network = self._rosters.network
                read = self._fetching.reading.slice
                shard, _ = await self._env.compute(read, shown, leaf, sharding, network)
                kept.seated = shard.relays
            kept.take_leaf(leaf, head, self._fetching.reading.roster)

    async def _keep(self, kept: KeptShard, context: Context) -> None:
        """Have a shard, and from then on a leaf of it each epoch, until it is dropped."""
        with kept.scope:
            try:
                if kept.leaf is None:
                    await self._take_first(kept)
            except FAILURES as error:
                kept.problem = str(error)
                self._counters.add("shard_fetches_failed")
                log.info("the relays of a shard cannot be had", reason=str(error))
            if kept.leaf is not None:
                kept.tried.set()
                await self._rosters.fresh()  # after an absence old rosters tell of days gone by
                self._plan(kept, context)
                return
        # It failed, or was dropped: whoever waits for it may ask again.
        self._drop(kept)
        kept.problem = kept.problem or "it gave way to others"
        kept.tried.set()

    async def _take_first(self, kept: KeptShard) -> None:
        """Fetch a shard's slice, and its leaves of this epoch and of the one before."""
        heads = telling(self._rosters.rosters(), kept.day)
        begun = [(head, one) for head, one in heads if head.epoch <= self._epoch()] or heads[:1]
        if not begun:
            raise Refusal("no roster tells of such a shard")
        head, sharding = begun[-1]
        whom = [] if kept.is_own else await self._guides.guides(sharding, kept.number)
        leaf = await self._fetch_leaf(kept, head, sharding, whom)
        slices: list[Shard] = []
        leaves = [(leaf, head)]
        problems: list[str] = []

        async def take_slice() -> None:
            await self._fetching.pause()
            try:
                async with self._turn(kept):
                    shard, shown = await self._fetching.slice(sharding, leaf, whom)
            except FAILURES as error:
                problems.append(str(error))
                return
            await self._serve(kept, AskSlice(kept.day, kept.number), shown)
            slices.append(shard)

        async def take_earlier(head: Roster, sharding: Sharding) -> None:
            """Who was away then takes no publications yet; without it a publication may lose an origin."""
            await self._fetching.pause()
            with suppress(*FAILURES):
                leaves.append((await self._fetch_leaf(kept, head, sharding, whom), head))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_slice)
            if len(begun) > 1:
                nursery.start_soon(take_earlier, *begun[-2])
        if problems:
            raise TransportError(problems[0])
        kept.seated = slices[0].relays
        for taken, head in sorted(leaves, key=lambda pair: pair[1].epoch):
            kept.take_leaf(taken, head, self._fetching.reading.roster)
        self._counters.add("shards_taken")

    def _plan(self, kept: KeptShard, context: Context) -> None:
        """Have the next leaf of a shard taken at a moment drawn for it, once a head tells of one."""
        coming = self._next(kept)
        kept.due = math.inf if coming is None else self._moment(kept, coming[0])
        if coming is not None:
            context.timetable.at(kept.due, self._go_on, kept.day, kept.number, kept.due, context)

    def _plan_waiting(self, context: Context) -> None:
        for kept in self._kept.values():
            if kept.due == math.inf:
                self._plan(kept, context)

    def _go_on(self, day: int, number: int, moment: float, context: Context) -> None:
        """Take a leaf; a shard is told by its name, so that what was dropped is not held until then."""
        kept = self._kept.get((day, number))
        if kept is not None and kept.due == moment:
            kept.scope = trio.CancelScope()
            context.spawn(self._follow, kept, context)

    async def _follow(self, kept: KeptShard, context: Context) -> None:
        """Take a leaf, and plan for the next, unless the shard is dropped."""

        async def take_next() -> None:
            if (coming := self._next(kept)) is not None:
                await self._take_next(kept, *coming)

        def note(reason: str, again_in: int) -> None:
            self._counters.add("shard_fetches_failed")
            log.info("no leaf of a shard", reason=reason, again_in=again_in)

        longest = min(LONGEST_PAUSE, self._calendar.lead)
        with kept.scope:
            await retry(take_next, FAILURES, Backoff(FIRST_PAUSE, longest, self._env.randomness), note)
            self._plan(kept, context)

    async def _take_next(self, kept: KeptShard, head: Roster, sharding: Sharding) -> None:
        """Take the leaf of an epoch, from any relays of the shard: each of them has it."""
        last = kept.near.newest
        whom = [] if kept.is_own or last is None else [asked_relay(relay) for relay in last.relays.values()]
        leaf = await self._fetch_leaf(kept, head, sharding, whom)
        kept.take_leaf(leaf, head, self._fetching.reading.roster)
        if kept.near.held:
            self._counters.add("rosters_held")
        if kept.near.held == 1:
            log.error("a shard lacks too many relays and is held: many are gone, or the directories lie")

    async def _fetch_leaf(
        self, kept: KeptShard, head: Roster, sharding: Sharding, whom: Collection[ShardContact]
    ) -> Leaf:
        async with self._turn(kept):
            leaf, shown = await self._fetching.leaf(sharding, head.epoch, kept.number, whom)
        await self._serve(kept, AskLeaf(head.epoch, kept.day, kept.number), shown)
        return leaf

    async def _serve(self, kept: KeptShard, request: ShardRequest, shown: Shown) -> None:
        if kept.is_own:
            await self._serving.keep(request, shown)

    def _turn(self, kept: KeptShard) -> AbstractAsyncContextManager[object]:
        return nullcontext() if kept.is_own else self._fetches

    def _epoch(self) -> int:
        return self._calendar.epoch(self._env.now())

    def _next(self, kept: KeptShard) -> tuple[Roster, Sharding] | None:
        """Return the head by which to take the next leaf: the newest; of our own shard also the coming."""
        last = kept.near.newest
        heads = telling(self._rosters.rosters(), kept.day)
        later = [pair for pair in heads if last is None or pair[0].epoch > last.epoch]
        begun = [pair for pair in later if kept.is_own or pair[0].epoch <= self._epoch()]
        return begun[-1] if begun else next(iter(later), None)

    def _moment(self, kept: KeptShard, head: Roster) -> float:
        """Draw when to take a leaf: its own relay's before the epoch, so that others can ask for it."""
        now, begins = self._env.now(), self._calendar.epoch_start(head.epoch)
        first, last = max(now, begins), begins + FETCHED_WITHIN * self._calendar.epoch_seconds
        if kept.is_own:
            first, last = now, begins
        return self._env.uniform(first, max(last, first + self._calendar.lead / 10))
