"""A host's part: it gives a block a round for each box with a lane, whatever there is, and to nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from hushcast_overlay.relay.boxes.box_lanes import BoxErrand
from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.cover_frames import CoverGiven
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import LaneBox
from hushcast_protocol.cover.lane_papers import LaneErrand
from hushcast_protocol.cover.lane_pieces import lane_pieces
from hushcast_protocol.cover.lane_seals import host_block
from hushcast_protocol.overlay.frame_directions import BetweenCover
from hushcast_protocol.overlay.lane_holds import LaneHold, check_lane_hold

# Shares of a round, from its begin, between which lanes have their moments. A second hands the round before
# down at 0.3, and this one at 1.3: clocks differ.
GIVEN_FROM, GIVEN_UNTIL = 0.4, 1.2


@dataclass(slots=True)
class _Lane:
    errand: LaneErrand
    box: LaneBox
    moment: float
    """Share of a round at which its blocks are given."""


class HostDesk:
    """One relay as the host of boxes with lanes."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._rules = rules
        self._means = means
        self._env = means.context.env
        self._counters = means.context.counters
        self._lanes: dict[bytes, _Lane] = {}
        self._turn = trio.Lock()  # of those who ask: what is checked holds until it is kept
        self._first = self._now + 1  # after a start: each key seals once

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    async def load(self) -> None:
        """Take up the lanes that were kept before a restart, with what waits in their boxes."""
        self._means.lanes.hears = self._came
        for box, kept in self._means.lanes:
            try:
                lane = self._lanes[box] = self._made(self._opened(kept.sealed), LaneBox(self._rules))
            except PeerError:  # its key was replaced
                self._means.lanes.forget(box)
                continue
            async for message in self._means.lanes.waiting(box):
                began = self._rules.round_at(self._means.shards.calendar.day_start(message.day))
                for piece in lane_pieces(encode(message)):
                    lane.box.restore(piece, began)

    def close(self) -> None:
        """Hear nothing more: other rules hold."""
        self._means.lanes.hears = None

    async def hold(self, asked: LaneHold, paid: bool) -> None:
        """Have a box, a lane for it, elements that lead to it, as its owner asks; durable on return.

        Raises a `PeerError` where no owner asks so, `Refusal` as boxes and their lanes do: "list", too, where
        the errand names no second of the list, "day" where it is for longer than a quarter, or is over.
        """
        check_lane_hold(self._rules.network, self._means.relay, asked)
        if asked.errand is None:
            if asked.box not in self._means.lanes:
                raise DecodeError("elements are to lead to a box without a lane")
            await self._means.hold_box(asked.box, asked.held, paid)
            return
        async with self._turn:
            await self._begin(asked, asked.errand, paid)

    async def _begin(self, asked: LaneHold, sealed: bytes, paid: bool) -> None:
        errand = self._opened(sealed)
        if not self._now <= errand.until <= self._now + self._rules.rounds_in(QUARTER):
            raise Refusal("day")
        if not self._means.covers.is_second(errand.second):
            raise Refusal("list")  # a stranger would have blocks go to whomever he likes
        kept = BoxErrand(errand.until, sealed)
        self._means.lanes.check(asked.box, kept, paid)
        await self._means.hold_box(asked.box, asked.held, paid)
        known = self._lanes.get(asked.box)
        self._lanes[asked.box] = self._made(errand, LaneBox(self._rules) if known is None else known.box)
        await self._means.lanes.keep(asked.box, kept)

    async def run(self) -> None:
        """Give the blocks of each round, each at its moment, until cancelled."""
        async with trio.open_nursery() as nursery:
            number = self._first
            while True:
                await self._env.sleep_until((number + GIVEN_FROM) * self._rules.round_seconds)
                for box, moment in sorted(self._due(number), key=lambda one: one[1]):
                    await self._env.sleep_until((number + moment) * self._rules.round_seconds)
                    if (given := self._given(box, number)) is not None:
                        nursery.start_soon(self._means.sends.send, given)
                number = max(number + 1, self._now)

    def _due(self, number: int) -> list[tuple[bytes, float]]:
        for box, lane in list(self._lanes.items()):
            if lane.errand.until < number or box not in self._means.lanes:
                self._means.lanes.forget(box)
                del self._lanes[box]
        return [(box, lane.moment) for box, lane in self._lanes.items()]

    def _given(self, box: bytes, number: int) -> dict[RelayId, list[BetweenCover]] | None:
        if (lane := self._lanes.get(box)) is None:
            return None
        self._counters.add("blocks_given")
        block = host_block(lane.errand.key, number, lane.box.fill(number))
        return {lane.errand.second: [CoverGiven(number, lane.errand.lane, block)]}

    def _came(self, box: bytes, message: Message) -> None:
        if (lane := self._lanes.get(box)) is not None:
            for piece in lane_pieces(encode(message)):
                lane.box.put(piece, self._now)

    def _opened(self, sealed: bytes) -> LaneErrand:
        errand = LaneErrand.opened(self._rules, self._means.relay, self._means.identity.parcel_key, sealed)
        if errand.second == self._means.relay:
            raise DecodeError("a host is to be the second of its own lane")
        return errand

    def _made(self, errand: LaneErrand, box: LaneBox) -> _Lane:
        return _Lane(errand, box, self._env.uniform(GIVEN_FROM, GIVEN_UNTIL))
