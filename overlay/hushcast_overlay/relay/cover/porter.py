"""A porter: takes its daemons' letters, and passes five a round for each, whether it is there or not."""

from __future__ import annotations

from collections import Counter
from functools import partial

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.places import Places, PorterPlace
from hushcast_overlay.relay.cover.porter_records import MAX_PLACES
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, inside
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import (
    CoverBill,
    CoverBills,
    CoverBlocks,
    CoverHanded,
    CoverListed,
    CoverPassed,
    CoverPlace,
    CoverPlaced,
    CoverWaybill,
    PlaceRefusal,
    placed_in,
)
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_second import MAX_BILLS_OF_PORTER
from hushcast_protocol.cover.letters import empty_letter
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.overlay.frame_directions import BetweenCover, FromCovered
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.transports.channel import Channel

# Blocks of one second in a round: one of each bill, and those of a round that is late.
_HANDED_A_ROUND = 2 * MAX_BILLS_OF_PORTER
SILENT_FOR = 3  # rounds without letters after which a link ends: its daemon opens another when it is there


class Porter:
    """One relay as a porter."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self._rules = rules
        self._means = means
        self._env = means.context.env
        self._store = means.context.store
        self._counters = means.context.counters
        self._showing = FewAtOnce()
        self._handed: Counter[RelayId] = Counter()  # blocks of each second since the last round
        self.places = Places(rules, means.identity, means.context)

    def fullness(self) -> float:
        """Return the share (0 to 1) of the places that are taken."""
        return len(self.places) / MAX_PLACES

    def admit(self, frame: CoverPlace) -> PlaceRefusal | None:
        """Give a daemon its place, unless it has one; return why it gets none."""
        if self.places.find(_name(frame)) is not None:
            return None
        if frame.second == self._means.relay or not self._means.covers.is_second(frame.second):
            return "list"
        if (refused := self._means.admission.refusal(frame)) is not None:
            return refused
        try:
            self.places.take(_name(frame), frame.second, frame.waybill)
        except Refusal:
            return "quota"
        return None

    async def serve(self, channel: Channel[FromCovered], frame: CoverPlace) -> None:
        """Take the letters of a daemon that was admitted, until its link ends; an older one ends.

        Raises a `PeerError` or `TransportError`.
        """
        place = self.places.find(_name(frame))
        assert place is not None
        if place.link is not None:
            place.link.cancel()
        place.link = scope = trio.CancelScope()
        try:
            with scope:
                await channel.send(CoverPlaced(None, place.queue.begins))
                while True:
                    scope.deadline = trio.current_time() + SILENT_FOR * self._rules.round_seconds
                    await self._answer(place, channel, await channel.first())
        finally:
            if place.link is scope:
                place.link = None

    async def _answer(self, place: PorterPlace, channel: Channel[FromCovered], frame: FromCovered) -> None:
        if isinstance(frame, CoverBills):
            self.places.take_bills(place, frame)
            return
        self.places.hand_in(place, frame)
        for round_ in place.blocks.asked_for(frame.since, frame.round):
            listed, block = await self.places.block(place, round_) or (round_, self._env.randomness(BLOCK))
            lanes = await self.places.lane_blocks(place, round_)
            await channel.send(CoverBlocks(round_, listed, (*lanes, block)))

    def take_list(self, frame: CoverListed, second: RelayId) -> None:
        """Take a list for a daemon; raise `DecodeError` where a second hands in more than one a round."""
        if (place := self.places.of_waybill(frame.waybill, second)) is None:
            self._counters.add("letters_refused")  # of a place that has just ended
            return
        place.blocks.take(frame.round, frame.sealed)

    def take_block(self, frame: CoverHanded, second: RelayId) -> None:
        """Take a block of a lane, of the round before.

        Raises `DecodeError` where a second hands down more than all bills that it is shown have. One block is
        no fault of it: a daemon may tell one bill for two seconds, or another's.
        """
        self._handed[second] += 1
        if self._handed[second] > _HANDED_A_ROUND:
            raise DecodeError("a second hands down more blocks than it has bills")
        place = self.places.of_bill(frame.bill)
        now = self._rules.round_at(self._env.now())
        if place is None or place.lanes is None or frame.round != now - 1:  # it has just ended, or is slow
            self._counters.add("blocks_refused")
            return
        try:
            place.lanes.take(frame.bill, frame.block, second)
        except (PeerError, Refusal):
            self._counters.add("blocks_refused")

    async def run(self) -> None:
        """Pass letters at the end of each round, until cancelled."""
        async with trio.open_nursery() as nursery:
            now = self._rules.round_at(self._env.now())
            while True:
                await self._env.sleep_until(self._rules.end_of(now))
                nursery.start_soon(self._send, now, await self.end_round(now))
                nursery.start_soon(self._show_bills, now)
                now = max(now + 1, self._rules.round_at(self._env.now()))

    async def end_round(self, now: int) -> dict[RelayId, list[tuple[PorterPlace, CoverPassed]]]:
        """Return what is passed to which second; what was passed is forgotten durably before anything is.

        So no letter passes twice: what a kill loses goes anew.
        """
        self._handed.clear()
        passed: dict[RelayId, list[tuple[PorterPlace, CoverPassed]]] = {}
        changes: list[Change] = []
        for place in self._env.sample(list(self.places), len(self.places)):
            await trio.lowlevel.checkpoint()
            if place.queue.has_ended(now):
                changes += self.places.end(place)
                continue
            changes += self.places.close_round(place, now)
            if (second := self._means.shards.relay(place.second)) is None:
                continue  # it is in no roster, and not to be reached
            empty = partial(empty_letter, self._rules, second, place.waybill_name, now, self._env.randomness)
            if letters := place.queue.end_round(now, empty):
                frame = CoverPassed(now, place.waybill_name, tuple(letters))
                passed.setdefault(second.id, []).append((place, frame))
                self._counters.add("letters_passed", len(letters))
        await self._store.write(*changes)
        return passed

    async def _send(self, now: int, passed: dict[RelayId, list[tuple[PorterPlace, CoverPassed]]]) -> None:
        frames: dict[RelayId, list[BetweenCover]] = {}
        showing: dict[RelayId, list[PorterPlace]] = {}
        for second, letters in passed.items():
            relay = self._means.shards.relay(second)
            said = frames.setdefault(second, [])
            for place, frame in letters:
                if relay is not None and self._is_to_be_shown(place, now):
                    said.append(await self._waybill(place, relay))
                    showing.setdefault(second, []).append(place)
                said.append(frame)
        for second in await self._means.sends.send(frames):
            for place in showing.get(second, ()):
                place.shown = now

    async def _show_bills(self, now: int) -> None:
        """Show the bills that are due in a round, whether their daemons are there or not.

        Letters do not wait for their stamps. What did not go is shown in the next round.
        """
        async with self._showing:  # a stamp may take longer than a round
            await self._show_due(now)

    async def _show_due(self, now: int) -> None:
        frames: dict[RelayId, list[BetweenCover]] = {}
        showing: dict[RelayId, list[PorterPlace]] = {}
        for place in self.places:
            if place.lanes is None or now < place.queue.begins:
                continue
            place.unshown.update(second for second, _ in place.lanes.shown(now))
            for second, sealed in place.lanes.bills:
                relay = self._means.shards.relay(second)
                if second in place.unshown and relay is not None and self._means.covers.is_second(second):
                    stamp = await self._stamp(relay, CoverBill(sealed, None))
                    frames.setdefault(second, []).append(CoverBill(sealed, stamp))
                    showing.setdefault(second, []).append(place)
        for second in await self._means.sends.send(frames):
            for place in showing.get(second, ()):
                place.unshown.discard(second)

    def _is_to_be_shown(self, place: PorterPlace, now: int) -> bool:
        return place.shown is None or now - place.shown >= self._rules.held_rounds

    async def _waybill(self, place: PorterPlace, second: Relay) -> CoverWaybill:
        stamp = await self._stamp(second, CoverWaybill(place.waybill, None))
        return CoverWaybill(place.waybill, stamp)

    async def _stamp(self, second: Relay, shown: CoverWaybill | CoverBill) -> ProofOfWork | None:
        """Return the stamp that a second asks for, if any."""
        if not second.difficulty:
            return None
        asked = inside(second.difficulty, 1)
        return await self._means.connector.mint(second, placed_in(shown), asked)


def _name(frame: CoverPlace) -> bytes:
    """Return what a place is kept by: its secret is nowhere on disk."""
    return digest(Domain.COVER_PLACE, frame.place)
