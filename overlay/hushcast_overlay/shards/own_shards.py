"""Own shards: a relay holds the shard it is in today, and tomorrow's once that is drawn, and serves both.

What it serves is from authorities: its shards' slices and leaves and, where it is one of five guides, the
whole guide. Tomorrow's is fetched at a moment of each relay's own, so that not all ask at once.
"""

from __future__ import annotations

from collections.abc import Callable

from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.kept_shard import KeptShard
from hushcast_overlay.shards.shard_fetcher import ShardFetcher
from hushcast_overlay.shards.shard_keeper import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, ShardKeeper
from hushcast_overlay.shards.shard_server import ShardServer
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.guides import piece_bits
from hushcast_protocol.shards.shard_requests import AskPiece
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.retry import retry


class OwnShards:
    """The shards that one relay is in, held from `begin` on."""

    def __init__(
        self,
        us: RelayId,
        rosters: RosterKeeper,
        keeper: ShardKeeper,
        fetching: ShardFetcher,
        serving: ShardServer,
        wanted: Callable[[], dict[int, Sharding]],
        env: Environment,
    ) -> None:
        """`wanted` returns the cuts that count now, by their days."""
        self._us = us
        self._rosters = rosters
        self._calendar = rosters.calendar
        self._keeper = keeper
        self._fetching = fetching
        self._serving = serving
        self._wanted = wanted
        self._env = env
        self._begun: frozenset[int] = frozenset()

    async def begin(self, spawn: Callable[..., None]) -> None:
        """Take up each cut that a roster tells of from now on, by tasks that `spawn` starts."""
        await self._rosters.fresh()  # after an absence old rosters tell of days gone by
        self._await_cut(spawn)

    def _await_cut(self, spawn: Callable[..., None]) -> None:
        def take_up() -> None:
            wanted = self._wanted()
            for day in sorted(wanted.keys() - self._begun):
                spawn(self._hold, wanted[day])
            self._begun = frozenset(wanted)
            self._await_cut(spawn)

        self._rosters.once(self._is_one_new, take_up)

    def _is_one_new(self) -> bool:
        wanted = self._wanted().keys()
        # A day that comes again, as when the clock was wrong, is begun again.
        self._begun = self._begun.intersection(wanted)
        return bool(wanted - self._begun)

    async def _hold(self, sharding: Sharding) -> None:
        """Hold this relay's shard of one cut and, as a guide, the guide; again and again where that fails."""
        shard = self._keeper.own_shard(sharding)
        assert shard is not None
        if self._keeper.held(sharding, shard) is None:
            await self._env.sleep_until(self._moment(sharding))
        longest = min(LONGEST_PAUSE, self._calendar.lead)
        backoff = Backoff(FIRST_PAUSE, longest, self._env.randomness)

        async def hold() -> None:
            if sharding.day in self._wanted():
                kept = await self._keeper.find(sharding, shard)
                if self._is_guide(kept, sharding):
                    await self._take_guide(sharding)

        await retry(
            hold,
            FAILURES,
            backoff,
            lambda why, pause: log.warning("no relays of this relay's shard", reason=why, again_in=pause),
        )

    def _moment(self, sharding: Sharding) -> float:
        """Draw when to fetch a shard: at once if its day has begun, else in half an epoch from now."""
        now = self._env.now()
        begins = self._calendar.day_start(sharding.day)
        last = min(now + self._calendar.grace, begins - self._calendar.lead)
        return self._env.uniform(now, max(last, now + self._calendar.lead / 100))

    def _is_guide(self, kept: KeptShard, sharding: Sharding) -> bool:
        return self._us in self._fetching.reading.guides(sharding.beacon, kept.seated)

    async def _take_guide(self, sharding: Sharding) -> None:
        """Fetch the pieces of the guide that are not held yet."""
        for number in range(2 ** piece_bits(sharding.bits)):
            if not self._serving.has_piece(sharding.day, number):
                _, shown = await self._fetching.piece(sharding, number, ())
                await self._serving.keep(AskPiece(sharding.day, number), shown)
                await self._fetching.pause()
