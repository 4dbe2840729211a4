"""A second's part: it takes waybills and letters of porters, and hands lists of thirds down to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.lane_desk import LaneDesk
from hushcast_overlay.relay.cover.shown_papers import PaperForm, ShownPapers
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import (
    MARKED_AT_ONCE,
    CoverList,
    CoverListed,
    CoverMarked,
    CoverPassed,
    CoverWaybill,
    MarkedContent,
)
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_second import (
    MAX_WAYBILLS,
    MAX_WAYBILLS_OF_PORTER,
    LetterSecond,
    MarkedLetter,
)
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.cover.waybills import WAYBILL, waybill_name
from hushcast_protocol.overlay.frame_directions import BetweenCover

_SEALED_AT_ONCE = 256  # lists of 4 KiB that one step seals, some 5 ms
_LISTS_WAITING = 2  # of one third; one comes a round, now and then a little late
# Waybills of one porter in a round: each once, and again after a restart. Those that do not open cost, too.
_SHOWN_A_ROUND = 2 * MAX_WAYBILLS_OF_PORTER

_WAYBILL = RecordKind(
    "cover-waybill",
    StateOwner.RELAY,
    holds="waybills that porters have shown it as a second, sealed as they came, and by which porter",
    lifetime="until no letter has named it for a day",
    bound=f"{MAX_WAYBILLS:,}, 800 KB",
)


class _ThirdsOfLists:
    """The thirds of the lists held, as the machine asks for them."""

    def __init__(self, means: CoverMeans) -> None:
        self._covers = means.covers

    def __contains__(self, relay: object) -> bool:
        return isinstance(relay, bytes) and self._covers.is_third(relay)


class WaybillDesk:
    """One relay as a second."""

    def __init__(self, rules: CoverRules, means: CoverMeans, lanes: LaneDesk) -> None:
        self._rules = rules
        self._means = means
        self._lanes = lanes
        self._env = means.context.env
        self._counters = means.context.counters
        key, first = means.identity.parcel_key, self._now + 1
        self._machine = LetterSecond(rules, means.relay, key, _ThirdsOfLists(means), first)
        form = PaperForm(_WAYBILL, WAYBILL, waybill_name, "letters_refused")
        self._waybills = ShownPapers(form, self._machine, rules, means)
        self._passed: dict[bytes, int] = {}  # the round whose letters came last, by waybill
        self._listed: dict[RelayId, int] = {}  # the last round whose list came, by third
        self._lists: dict[RelayId, deque[bytes]] = {}  # that are not handed down yet, by third

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    async def load(self) -> None:
        """Read back waybills, judged as when they came."""
        await self._waybills.load()

    def show(self, frame: CoverWaybill, porter: RelayId) -> None:
        """Take a porter's waybill; raises `DecodeError` where it shows more than it can have daemons."""
        self._waybills.show(frame, frame.waybill, porter, _SHOWN_A_ROUND)

    def take(self, frame: CoverPassed, porter: RelayId) -> None:
        """Take the five letters of a waybill and round.

        Raises `DecodeError` where a porter sends more. What does not open is its daemon's doing.
        """
        if not self._machine.is_shown(frame.waybill, porter):
            self._counters.add("letters_refused", len(frame.letters))
            return
        if self._passed.get(frame.waybill) == frame.round:
            raise DecodeError("a porter passes more letters than a round has")
        now = self._rules.next_of(self._rules.passed_at, self._env.now())
        if frame.round != now:  # it is slow, or one of its frames went past another
            self._counters.add("letters_refused", len(frame.letters))
            return
        self._passed[frame.waybill] = now
        for sealed in frame.letters:
            try:
                self._machine.take(sealed, now, porter)
            except (PeerError, Refusal):
                self._counters.add("letters_refused")

    async def run(self) -> None:
        """Pass letters on, and lists down, a while after the end of each round, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._each_round, self._rules.passed_at, self.end_round, nursery)
            nursery.start_soon(self._each_round, self._rules.listed_at, self.hand_down, nursery)

    async def _each_round(
        self,
        moment: Callable[[int], float],
        made: Callable[[int], Awaitable[dict[RelayId, list[BetweenCover]]]],
        nursery: trio.Nursery,
    ) -> None:
        while True:
            now = self._rules.next_of(moment, self._env.now())
            await self._env.sleep_until(moment(now))
            nursery.start_soon(self._means.sends.send, await made(now))

    async def end_round(self, now: int) -> dict[RelayId, list[BetweenCover]]:
        """Return what is passed to which third."""
        passed = self._machine.end_round(now, self._env.randomness)
        await trio.lowlevel.checkpoint()
        self._waybills.end_round()
        known = set(self._machine.names())
        self._passed = {name: last for name, last in self._passed.items() if name in known}
        self._counters.add("letters_passed", len(passed))
        frames: dict[RelayId, list[BetweenCover]] = {}
        for third, letters in _by_third(passed).items():
            for begin in range(0, len(letters), MARKED_AT_ONCE):
                await trio.lowlevel.checkpoint()
                content = [MarkedContent(one.mark, one.inside) for one in letters[begin:][:MARKED_AT_ONCE]]
                frames.setdefault(third, []).append(CoverMarked(now, tuple(content)))
        return frames

    def take_list(self, frame: CoverList, third: RelayId) -> None:
        """Take a third's list, to be handed down to its daemons' porters.

        Raises `DecodeError` where a third sends more than one a round.
        """
        if not self._means.covers.is_third(third):
            self._counters.add("letters_refused")
            return
        last = self._listed.get(third, -1)
        if frame.round == last or frame.round > self._now + 1:
            raise DecodeError("a third sends more lists than one a round")
        if frame.round < max(last, self._now - 1):  # it is slow, or a later list went past
            self._counters.add("letters_refused")
            return
        self._listed[third] = frame.round
        self._lists.setdefault(third, deque(maxlen=_LISTS_WAITING)).append(frame.listed)

    async def hand_down(self, now: int) -> dict[RelayId, list[BetweenCover]]:
        """Return what each porter is handed in a round: a block for each waybill, its third there or not.

        The blocks of lanes go with them.
        """
        lists = {third: waiting.popleft() for third, waiting in self._lists.items() if waiting}
        frames = await self._lanes.hand_down(now)
        for count, (porter, waybill) in enumerate(self._machine.shown()):
            if count % _SEALED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if (listed := lists.get(waybill.third)) is None:
                sealed = self._env.randomness(BLOCK)
            else:
                sealed = waybill.sealed_list(now, listed)
            frames.setdefault(porter, []).append(CoverListed(now, waybill.name, sealed))
        return frames


def _by_third(passed: Iterable[tuple[RelayId, MarkedLetter]]) -> dict[RelayId, list[MarkedLetter]]:
    """Return letters by third, else in their order."""
    found: dict[RelayId, list[MarkedLetter]] = {}
    for third, letter in passed:
        found.setdefault(third, []).append(letter)
    return found
