"""Inquiries: a host asks all keepers of each sought trunk, each epoch, for what came in the one before.

It asks at moments of its own, drawn anew for each trunk and epoch, and the same whether or not the owner of a
box is there. What a box lacks is put into it as any message is; a keeper that does not show it is handed it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

import trio

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.keepers.keeper_questions import KeeperQuestions
from hushcast_overlay.relay.boxes.sought_trunks import CLOCKS_DIFFER, SoughtTrunks
from hushcast_overlay.relay.keepers.hand_ins import HandIns
from hushcast_overlay.relay.next_hops import NextHops
from hushcast_overlay.shards.shard_keeper import FAILURES
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.box_frames import SoughtTrunk
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.keeper_frames import AskKept
from hushcast_protocol.overlay.kept_answers import windows
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.spool import Spool, by_hop

LAST = 0.75  # share of an epoch until which, from `CLOCKS_DIFFER` on, the one before is asked for
AGAIN_AFTER = (
    60.0  # seconds after the first question for a trunk: what was just dropped is with keepers by then
)
LONGEST_PAUSE = 60.0  # seconds at random between days gone by: keepers of several get no row of questions
LOOKS_AT_ONCE = 10_000  # of boxes for messages that keepers show: some 3 ms
MAX_WINDOWS = 4  # epochs asked for one by one; if more are owed, one answer of the whole day is less


class Inquiries:
    """The inquiries of one host."""

    def __init__(
        self,
        sought: SoughtTrunks,
        lists: CandidateLists,
        questions: KeeperQuestions,
        spool: Spool,
        next_hops: NextHops,
        hand_ins: HandIns,
        context: Context,
    ) -> None:
        self._sought = sought
        self._lists = lists
        self._questions = questions
        self._spool = spool
        self._next_hops = next_hops
        self._hand_ins = hand_ins
        self._calendar = sought.calendar
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._under_way: set[tuple[int, bytes]] = set()
        self._asking: set[tuple[int, bytes]] = set()

    def look(self) -> None:
        """Begin with the trunks whose days have come; each is asked for until its day is over."""
        until = self._calendar.open_days(self._env.now()).stop - 1
        for day, trunk in self._sought.wanted(until) - self._under_way:
            self._begin(day, trunk, self._pause())

    def sought(self, trunks: Iterable[SoughtTrunk]) -> None:
        """Ask at once for trunks that are sought from now on, if their days have come; and a minute later.

        Of those that are wanted whole one day after the other is asked for, the oldest first.
        """
        open_days = self._calendar.open_days(self._env.now())
        come = sorted((one for one in trunks if one.day < open_days.stop), key=lambda one: one.day)
        for one in come:
            if one.day in open_days:
                self._spawn(self._ask_at_once, one.day, one.trunk)
        fresh = {(one.day, one.trunk) for one in come} - self._under_way
        gone_by = {(one.day, one.trunk) for one in come if one.is_whole and one.day < open_days.start}
        for day, trunk in sorted(fresh - gone_by):
            self._begin(day, trunk, self._pause())
        self._under_way |= fresh  # a day gone by when its turn was: else it came before older ones
        self._spawn(self._look_back, [one for one in come if one.is_whole], fresh & gone_by)

    def _begin(self, day: int, trunk: bytes, pause: float) -> None:
        self._under_way.add((day, trunk))
        self._spawn(self._follow, day, trunk, pause)

    def _pause(self) -> float:
        """Return the seconds until a moment of this epoch, where it has just begun, or of the next."""
        length = self._calendar.epoch_seconds
        epoch = self._calendar.epoch(self._env.now() - CLOCKS_DIFFER * length) + 1
        moment = self._calendar.epoch_start(epoch) + self._env.uniform(CLOCKS_DIFFER, LAST) * length
        return max(0.0, moment - self._env.now())

    async def _follow(self, day: int, trunk: bytes, pause: float) -> None:
        """Ask for a trunk once an epoch, until the day is over or nobody seeks it."""
        try:
            while True:
                await trio.sleep(pause)
                if not self._sought.boxes(day, trunk):
                    return
                await self._catch_up(day, trunk)
                pause = self._pause()
        finally:
            self._under_way.discard((day, trunk))

    async def _ask_at_once(self, day: int, trunk: bytes) -> None:
        for pause in (0.0, AGAIN_AFTER):
            await trio.sleep(pause)
            await self._ask(day, trunk, self._calendar.epoch(self._env.now()), self._sought.boxes(day, trunk))

    async def _look_back(self, trunks: list[SoughtTrunk], fresh: Container[tuple[int, bytes]]) -> None:
        """Ask for what came before; what is not had now is asked for again each epoch."""
        for one in trunks:
            await self._catch_up(one.day, one.trunk)
            if (one.day, one.trunk) in fresh:
                self._begin(one.day, one.trunk, self._pause())
            await trio.sleep(self._env.uniform(0.0, LONGEST_PAUSE))

    async def _catch_up(self, day: int, trunk: bytes) -> None:
        """Ask for what is owed of a trunk, unless that is being done."""
        if (day, trunk) in self._asking:
            return
        self._asking.add((day, trunk))
        try:
            if owed := self._sought.boxes(day, trunk):
                await self._ask_owed(day, trunk, owed)
        finally:
            self._asking.discard((day, trunk))

    async def _ask_owed(self, day: int, trunk: bytes, owed: dict[bytes, int]) -> None:
        """Ask for the windows that are over and were not asked for, each for the boxes that want it."""
        over = min(self._calendar.epoch(self._env.now()), windows(day).stop)
        first = min(owed.values())
        if over - first > MAX_WINDOWS:
            boxes = [box for box, epoch in owed.items() if over - epoch > MAX_WINDOWS]
            if await self._ask(day, trunk, None, boxes):
                self._sought.asked(boxes, day, over)
            first = over - MAX_WINDOWS
        for epoch in range(first, over):
            boxes = [box for box, wanted in self._sought.boxes(day, trunk).items() if wanted == epoch]
            if boxes and await self._ask(day, trunk, epoch, boxes):
                self._sought.asked(boxes, day, epoch + 1)

    async def _ask(self, day: int, trunk: bytes, epoch: int | None, boxes: Collection[bytes]) -> bool:
        """Ask all keepers for a window, and fetch what boxes lack of it; return whether that is done.

        It is not where no keeper answers, or there is more than one round may bring.
        """
        try:
            places = await self._lists.places(day, trunk)
        except FAILURES as error:
            log.info("it is not known whom to ask", reason=str(error))
            return False
        if not places:
            return places is not None  # nobody keeps, or it is not known who does
        shown = await self._questions.ids(places, AskKept(day, trunk, epoch))
        ids = frozenset[bytes]().union(*(kept.ids for kept in shown.values()))
        lacking = await self._lacking(boxes, day, ids)

        async def take(message: Message, without: Collection[RelayId]) -> None:
            await self._take(message, boxes)
            if len(shown) - len(without) > 1:  # what one alone shows may be its own invention
                self._hand_ins.pass_on(message, without)

        is_whole = await self._questions.bring(day, trunk, places, shown, lacking, take)
        await self._spool.durable()
        return bool(shown) and is_whole

    async def _lacking(self, boxes: Collection[bytes], day: int, shown: Iterable[bytes]) -> set[bytes]:
        """Return what some of the boxes lack, in short steps: one topic may have hundreds of boxes here."""
        found: set[bytes] = set()
        looks = 0
        for one in shown:
            if self._sought.lacking(boxes, day, one):
                found.add(one)
            looks += 1 + len(boxes)
            if looks > LOOKS_AT_ONCE:
                looks = 0
                await trio.lowlevel.checkpoint()
        return found

    async def _take(self, message: Message, boxes: Collection[bytes]) -> None:
        """Put a message into the boxes that lack it."""
        wanting = self._sought.lacking(boxes, message.day, message.id)
        sends = [HopMessage(box_hop(box), message) for box in wanting]
        if not self._spool.is_roomy(len(message.body), sends):
            self._counters.add("messages_over_share", len(sends))
            return
        self._counters.add("messages_from_keepers", len(sends))
        self._next_hops.enqueue(by_hop(self._spool.put(sends)))
        await self._next_hops.make_room()
