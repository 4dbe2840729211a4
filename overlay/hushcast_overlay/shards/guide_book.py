"""The guide book: whom to ask for each shard, found out in pieces.

A daemon draws one piece a day and has it from an authority. Each relay named in it has all pieces, so the
authorities do not hear which others are wanted, and a relay that does, not by whom.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from hushcast_overlay.shards.shard_fetcher import Parts, ShardContact, ShardFetcher, asked_guide
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.shards.guides import PIECE_BITS, piece_bits, piece_of
from hushcast_runtime.environment import Environment
from hushcast_runtime.few_at_once import FewAtOnce


@dataclass
class _Day:
    """The pieces of one cut that are held: 128 at most, of 160 relays each."""

    drawn: int
    """The piece that authorities are asked for."""
    pieces: dict[int, Parts] = field(default_factory=dict)
    locks: dict[int, FewAtOnce] = field(default_factory=dict)


class GuideBook:
    """The guides that one daemon knows, in memory."""

    def __init__(self, fetching: ShardFetcher, env: Environment) -> None:
        self._fetching = fetching
        self._env = env
        self._days: dict[int, _Day] = {}

    async def guides(self, sharding: Sharding, shard: int) -> list[ShardContact]:
        """Return the relays that serve a shard, five at most; raises as `ShardFetcher`."""
        day = self._days.get(sharding.day)
        if day is None:
            day = self._days[sharding.day] = _Day(self._env.below(2 ** piece_bits(sharding.bits)))
        number = piece_of(shard)
        whom: list[ShardContact] = []
        if number != day.drawn and number not in day.pieces:
            drawn = await self._piece(day, sharding, day.drawn, whom)
            whom = [asked_guide(guide) for guides in drawn for guide in guides]
            await self._fetching.pause()
        parts = await self._piece(day, sharding, number, whom)
        return [asked_guide(guide) for guide in parts[shard % 2**PIECE_BITS]]

    def forget(self, staying: Collection[int]) -> None:
        """Forget the guides of all days but these."""
        self._days = {day: held for day, held in self._days.items() if day in staying}

    async def _piece(self, day: _Day, sharding: Sharding, number: int, whom: list[ShardContact]) -> Parts:
        async with day.locks.setdefault(number, FewAtOnce()):  # whoever wants the same waits for it
            if number not in day.pieces:
                day.pieces[number], _ = await self._fetching.piece(sharding, number, whom)
        return day.pieces[number]
