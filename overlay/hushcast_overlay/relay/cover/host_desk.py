"""A host's part: it gives a block a round for each box with a lane, whatever there is, and to nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from hushcast_overlay.relay.boxes.box_lanes import BoxErrand
from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.cover_frames import CoverGiven
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import LaneBox, lane_filled
from hushcast_protocol.cover.lane_papers import HELD_FOR, LaneErrand
from hushcast_protocol.cover.lane_pieces import lane_pieces, piece_sizes
from hushcast_protocol.cover.lane_seals import host_block
from hushcast_protocol.overlay.frame_directions import BetweenCover
from hushcast_protocol.overlay.lane_holds import LaneHold, check_lane_hold
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.storage.spool import SpooledMessage

# Share of a round, from its begin, at which what is given in it is read: ahead, so that no moment tells how
# long that takes.
READ_FROM = 0.3
# Shares between which lanes have their moments. A second hands the round before down at 0.3, and this one at
# 1.3: clocks differ.
GIVEN_FROM, GIVEN_UNTIL = 0.4, 1.2
_LEAST = 64  # bodies of a lane up to which nobody looks which of them still wait


@dataclass(slots=True)
class _Lane:
    errand: LaneErrand
    box: LaneBox[bytes]
    """What the box has, by its places in the spool: so it is bounded as that is."""
    moment: float
    """Share of a round at which its blocks are given."""
    most: int = _LEAST
    """With more bodies than these it is looked which of them still wait."""


class HostDesk:
    """One relay as the host of boxes with lanes."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._rules = rules
        self._means = means
        self._env = means.context.env
        self._counters = means.context.counters
        self._lanes: dict[bytes, _Lane] = {}
        self._sized: tuple[Message | None, tuple[int, ...]] = (None, ())  # the last message's items
        self._turn = FewAtOnce()  # of those who ask: what is checked holds until it is kept
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
            else:
                await self._fill(box, lane)

    async def _fill(self, box: bytes, lane: _Lane) -> None:
        """Have a lane say what waits in its box already."""
        async for item in self._means.lanes.waiting(box):
            began = self._rules.round_at(self._means.shards.calendar.day_start(item.message.day))
            lane.box.restore(item.key, self._sizes(item.message), began)

    def close(self) -> None:
        """Hear nothing more: other rules hold."""
        self._means.lanes.hears = None

    async def hold(self, asked: LaneHold, paid: bool) -> None:
        """Have a box, a lane for it, elements that lead to it, as its owner asks; durable on return.

        Raises a `PeerError` where no owner asks so, `Refusal` as boxes and their lanes do: "list", too, where
        the errand names no second of the list, "lane" where another box has its way, "day" where it is for
        longer than `HELD_FOR`, or is over.
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
        errand, lanes = self._opened(sealed), self._means.lanes
        if not self._now <= errand.until <= self._now + self._rules.rounds_in(HELD_FOR):
            raise Refusal("day")
        if not self._means.covers.is_second(errand.second):
            raise Refusal("list")  # a stranger would have blocks go to whomever he likes
        way = errand.second, errand.lane
        if any((one.errand.second, one.errand.lane) == way for box, one in self._other(asked.box)):
            raise Refusal("lane")  # its second would be given two blocks a round
        if not paid:
            raise Refusal("quota")  # a lease that is free lasts a day, and a lane a quarter
        before, kept = lanes.get(asked.box), BoxErrand(errand.until, sealed)
        lanes.check(asked.box, kept)
        lanes.keep(asked.box, kept)  # at once: what comes from now on is for the lane
        known = self._lanes.get(asked.box)
        box: LaneBox[bytes] = LaneBox(self._rules) if known is None else known.box
        lane = self._lanes[asked.box] = self._made(errand, box)
        try:
            await self._means.hold_box(asked.box, asked.held, paid)
        except BaseException:
            if before is None or known is None:
                lanes.forget(asked.box)
                del self._lanes[asked.box]
            else:
                lanes.keep(asked.box, before)
                self._lanes[asked.box] = known
            raise
        if known is None:
            await self._fill(asked.box, lane)

    def _other(self, box: bytes) -> list[tuple[bytes, _Lane]]:
        return [(one, lane) for one, lane in self._lanes.items() if one != box]

    async def run(self) -> None:
        """Give the blocks of each round, each at its moment, until cancelled."""
        async with trio.open_nursery() as nursery:
            number = self._first
            while True:
                await self._env.sleep_until((number + READ_FROM) * self._rules.round_seconds)
                given = [(lane.moment, await self._given(lane, number)) for lane in self._due(number)]
                for moment, frames in sorted(given, key=lambda one: one[0]):
                    await self._env.sleep_until((number + moment) * self._rules.round_seconds)
                    self._counters.add("blocks_given")
                    nursery.start_soon(self._means.sends.send, frames)
                number = max(number + 1, self._now)

    def _due(self, number: int) -> list[_Lane]:
        for box, lane in list(self._lanes.items()):
            if lane.errand.until < number or box not in self._means.lanes:
                self._means.lanes.forget(box)
                del self._lanes[box]
        return list(self._lanes.values())

    async def _given(self, lane: _Lane, number: int) -> dict[RelayId, list[BetweenCover]]:
        items, pieces = [], dict[bytes, list[bytes]]()
        for place, index in lane.box.said(number):
            if place not in pieces:
                message = await self._means.lanes.read(place)
                pieces[place] = [] if message is None else lane_pieces(encode(message))
            items += pieces[place][index : index + 1]  # none of what gave way
        block = host_block(lane.errand.key, number, lane_filled(items))
        return {lane.errand.second: [CoverGiven(number, lane.errand.lane, block)]}

    def _came(self, box: bytes, item: SpooledMessage) -> None:
        if (lane := self._lanes.get(box)) is None:
            return
        lane.box.put(item.key, self._sizes(item.message), self._now)
        if len(lane.box) > lane.most:
            lane.box.keep(self._means.lanes.holds)
            lane.most = 2 * len(lane.box) + _LEAST

    def _sizes(self, message: Message) -> tuple[int, ...]:
        """Return the sizes of a message's items; that of one for many boxes is made once."""
        if self._sized[0] is not message:
            self._sized = message, piece_sizes(len(encode(message)))
        return self._sized[1]

    def _opened(self, sealed: bytes) -> LaneErrand:
        errand = LaneErrand.opened(self._rules, self._means.relay, self._means.identity.parcel_key, sealed)
        if errand.second == self._means.relay:
            raise DecodeError("a host is to be the second of its own lane")
        return errand

    def _made(self, errand: LaneErrand, box: LaneBox[bytes]) -> _Lane:
        return _Lane(errand, box, self._env.uniform(GIVEN_FROM, GIVEN_UNTIL))
