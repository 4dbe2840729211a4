"""A daemon's way down under cover: three lanes, always, and the subscriptions that they bring."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_overlay.routes.cover.covered_routes import CoveredRoutes
from hushcast_overlay.routes.cover.kept_lanes import KeptLanes, Lane
from hushcast_overlay.routes.cover.parcel_letters import ParcelLetters
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_frames import BLOCK_DAYS, CoverBills, CoverBlocks, LanesBill
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_box import MAX_LANE_ITEM
from hushcast_protocol.cover.lane_pieces import MAX_PIECES, LanePieces
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.network_cover import NetworkCover
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

_decode: Callable[[bytes], Message] = decoder(Message, "message", MAX_PIECES * MAX_LANE_ITEM)


class CoveredReader:
    """The lanes of one daemon, in use or not."""

    def __init__(
        self,
        rules: CoverRules,
        lanes: KeptLanes,
        routes: CoveredRoutes,
        messages: CoveredMessages,
        letters: ParcelLetters,
        context: Context,
    ) -> None:
        self._lanes = lanes
        self.routes = routes
        """Its subscriptions."""
        self._messages = messages
        self._letters = letters
        self._counters = context.counters
        self._pieces = [LanePieces() for _ in range(LANES)]
        self._telling: set[bytes] = set()
        # What is over gives way: a host says it again.
        self._came: deque[list[list[bytes]]] = deque(maxlen=rules.rounds_in(BLOCK_DAYS))
        self._more = trio.Event()

    @property
    def bills(self) -> CoverBills:
        """What the porter shows to the seconds of its lanes; there are some once `follow` has returned."""
        return CoverBills(tuple(LanesBill(second, bill) for second, bill in self._lanes.bills))

    def describe(self) -> list[int | None]:
        """Return of each lane for how many rounds it brought nothing that opens; `None`: it never did."""
        return [self._lanes.silent_for(number) for number in range(len(self._lanes.lanes))]

    async def follow(self, cover: NetworkCover, roster: Roster, chain: CoverChain) -> None:
        """Draw lanes where there are none, or others by the lists of now; have hosts told of new ones."""
        if await self._lanes.follow(cover, roster, chain):
            self.routes.stir()
        for lane in self._lanes.lanes:
            if not lane.is_told and lane.name not in self._telling:
                self._tell(lane)

    def _tell(self, lane: Lane) -> None:
        """Tell a host of its lane in a held letter: its moment says nothing of when the owner was there."""

        def end(is_done: bool) -> None:
            self._telling.discard(lane.name)

        try:
            self._messages.send(self._letters.hold(lane, end, self._lanes.note_told), True)
        except Refusal:
            return  # too many letters wait: it is tried in the next round
        self._telling.add(lane.name)

    def take(self, blocks: CoverBlocks) -> None:
        """Take the blocks of a round."""
        self.routes.judge(blocks.round - 1)
        if any(came := self._lanes.opened(blocks)):
            self._came.append(came)
            self._more.set()

    async def run(self) -> None:
        """Hand in what comes, until cancelled."""
        while True:
            await self._more.wait()
            self._more = trio.Event()
            while self._came:
                for number, items in enumerate(self._came.popleft()):
                    await self._hand_in(number, items)

    async def _hand_in(self, number: int, items: list[bytes]) -> None:
        try:
            await self.routes.take(number, self._messages_of(number, items))
        except Exception:  # the disk, perhaps: a host says it again
            self._counters.add("internal_errors")
            log.exception("what came by a lane met an error of this program")

    def _messages_of(self, number: int, items: list[bytes]) -> list[Message]:
        """Return the messages that are whole with the items of a lane's block."""
        found = []
        for item in items:
            try:
                if (body := self._pieces[number].take(item)) is not None:
                    message = _decode(body)
                    check_message(message)
                    found.append(message)
            except PeerError:
                self._counters.add("refused_form")
        return found
