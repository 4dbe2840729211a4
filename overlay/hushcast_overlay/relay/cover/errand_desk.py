"""A third's part: it lists what came; once an hour it drops messages, hands parcels over and lists those."""

from __future__ import annotations

from collections import Counter

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.parcel_errands import ParcelErrands
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.round_robin import RoundRobin
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.cover_frames import CoverList, CoverMarked
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_batch import MAX_LETTERS_HELD
from hushcast_protocol.cover.letter_release import HeldBody, LetterRelease
from hushcast_protocol.cover.letter_second import MarkedLetter
from hushcast_protocol.cover.letter_third import LetterThird
from hushcast_protocol.cover.receipt_list import ReceiptList
from hushcast_protocol.overlay.letter_errands import GiveErrand, read_errand
from hushcast_runtime.carriers.takers import Takers
from hushcast_runtime.change_signal import ChangeSignal

ERRANDS_AT_ONCE = 16  # messages that are being dropped; each takes two circuits
_READ_AT_ONCE = 256  # letters of a round that one step looks at, some 2 ms
_CONFIRMED = 2  # origins that have a message when it is listed


class ErrandDesk:
    """One relay as a third."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._rules = rules
        self._means = means
        self._env = means.context.env
        self._counters = means.context.counters
        first = self._now + 1
        self._machine = LetterThird(rules, means.relay, means.identity.parcel_key, first)
        self._receipts = ReceiptList(self._env.randomness)
        self._release = LetterRelease(rules)
        self._came: Counter[RelayId] = Counter()  # letters of each second since the last round
        self._hour = 0  # the round that ends the one of now
        self._errands: RoundRobin[RelayId, tuple[bytes, Message]] = RoundRobin()
        self._more = ChangeSignal()
        self._parcels = ParcelErrands(means, self._receipts.note_done)

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    def take(self, frame: CoverMarked, second: RelayId) -> None:
        """Take a second's letters.

        Raises `DecodeError` where it sends more than all its waybills have. What does not open is no fault of
        a second.
        """
        if not self._means.covers.is_second(second):
            self._counters.add("letters_refused", len(frame.letters))
            return
        self._came[second] += len(frame.letters)
        if self._came[second] > MAX_LETTERS_HELD:
            raise DecodeError("a second passes more letters than its waybills have")
        # What is over its share is no fault of an honest one: daemons choose their thirds.
        if self._came[second] > MAX_LETTERS_HELD // self._rules.width:
            self._counters.add("letters_refused", len(frame.letters))
            return
        now = self._rules.next_of(self._rules.dealt_at, self._env.now())
        for one in frame.letters:
            try:
                self._machine.take(MarkedLetter(frame.round, one.mark, one.content), now, second)
            except (PeerError, Refusal):
                self._counters.add("letters_refused")

    async def run(self) -> None:
        """Deal with the letters of each round a while after its end, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._parcels.run)
            for _ in range(ERRANDS_AT_ONCE):
                nursery.start_soon(self._drop_all)
            while True:
                now = self._rules.next_of(self._rules.dealt_at, self._env.now())
                await self._env.sleep_until(self._rules.dealt_at(now))
                if self._means.covers.is_third(self._means.relay):
                    nursery.start_soon(self._means.sends.send, await self.end_round(now))
                await self.let_go(now)

    async def end_round(self, now: int) -> dict[RelayId, list[CoverList]]:
        """Hold back what is in the letters of a round, and return the list of it for each second."""
        self._came.clear()
        for count, (second, content) in enumerate(self._machine.end_round(self._env.randomness)):
            if count % _READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if content.is_listed:
                self._receipts.note(second, content.receipt.number)
            if content.body is not None:
                held = HeldBody(second, content.receipt.done, content.body, now)
                if not self._release.hold(held, self._env.randomness):
                    self._counters.add("refused_quota")
        lists = {}
        for second in self._means.covers.seconds():
            await trio.lowlevel.checkpoint()
            lists[second] = [CoverList(now, self._receipts.end_round(second))]
        return lists

    async def let_go(self, now: int) -> None:
        """Deal at the end of a round with what is let go then; of the hour before nothing waits any longer.

        What there was no time for is drawn at random from a second's, as they come in random order.
        """
        hour = self._rules.released_in(now + 1)
        if hour != self._hour:  # also where the moment at which one ends was slept over
            self._hour = hour
            self._receipts.end_hour()
            self._parcels.end_hour()
            self._errands = RoundRobin()
        for count, one in enumerate(self._release.let_go(now, self._env.randomness)):
            if count % _READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            self._take_errand(one)

    def _take_errand(self, held: HeldBody) -> None:
        second, done = held.second, held.done
        try:
            errand = read_errand(held.body)
        except PeerError:
            self._counters.add("letters_refused")
            return
        if isinstance(errand, GiveErrand):
            self._parcels.add(second, done, errand)
            return
        if errand.message.day not in self._means.shards.calendar.open_days(self._env.now()):
            self._counters.add("refused_day")
            return
        self._errands.add(second, (done, errand.message))
        self._more.tell()

    async def _drop_all(self) -> None:
        while True:
            while not self._errands:
                await self._more.wait()
            second, (number, message) = self._errands.pop()
            takers = Takers()
            try:
                await self._means.drop(message, takers)
            except Refusal:
                continue  # there is nobody to drop at
            if len(set(takers.names)) >= _CONFIRMED:
                self._receipts.note_done(second, number)
