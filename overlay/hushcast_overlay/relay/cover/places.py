"""Places: the daemons that one porter serves, each with its queue and its blocks; on disk."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from hushcast_overlay.relay.cover.porter_records import (
    MAX_PLACES,
    BillsRecord,
    PlaceRecord,
    bills_change,
    block_change,
    kept_block,
    kept_lanes,
    lanes_change,
    letter_change,
    letter_key,
    load_places,
    place_change,
)
from hushcast_overlay.relay.identity import Identity
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import CoverBills, CoverLetters
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_porter import LanePorter
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.letter_second import MAX_WAYBILLS_OF_PORTER, OF_ONE_SECOND
from hushcast_protocol.cover.letters import OpenedLetter, Stage, open_letter
from hushcast_protocol.cover.porter_blocks import PorterBlocks
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_protocol.cover.receipt_list import BLOCK
from hushcast_protocol.cover.waybills import waybill_name
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change


class PorterPlace:
    """One daemon, as its porter knows it."""

    def __init__(
        self, name: bytes, second: RelayId, waybill: bytes, queue: PorterQueue, blocks: PorterBlocks
    ) -> None:
        self.name = name
        self.second = second
        self.waybill = waybill
        self.waybill_name = waybill_name(waybill)
        self.queue = queue
        self.blocks = blocks
        self.handed_in = -1
        """The round whose letters came last."""
        self.link: trio.CancelScope | None = None
        """Of the daemon's link, where it is there."""
        self.shown: int | None = None
        """The round in which the second was shown the waybill last."""
        self.letters: dict[int, list[bytes]] = {}
        """Keys of the records of letters that wait, by the round in which they are due."""
        self.listed: set[int] = set()
        """Rounds whose blocks have a list on disk."""
        self.lanes: LanePorter | None = None
        """Of the daemon's lanes, if it has told its bills."""
        self.billed_in: int | None = None
        """The round in which it did so last."""
        self.changed_in = 0
        """The round in which it told others than before."""
        self.unshown: set[RelayId] = set()
        """Seconds that were to be shown their bills, and were not reached."""
        self.laned: set[int] = set()
        """Rounds whose blocks of lanes are on disk."""

    @property
    def record(self) -> PlaceRecord:
        """As it is kept."""
        queue = self.queue
        return PlaceRecord(self.second, self.waybill, queue.begins, queue.patience, queue.last_there)


class Places:
    """The places of one porter."""

    def __init__(self, rules: CoverRules, identity: Identity, context: Context) -> None:
        self._rules = rules
        self._relay = identity.seed.public()
        self._key = identity.parcel_key
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._places: dict[bytes, PorterPlace] = {}
        self._by_waybill: dict[bytes, PorterPlace] = {}
        self._by_bill: dict[bytes, PorterPlace] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[PorterPlace]:
        return iter(list(self._places.values()))

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    async def load(self) -> None:
        """Read back what was kept before a restart, judged as when it came."""
        takes = (self._take_place, self._take_letter, self._take_block, self._take_bills, self._take_lanes)
        await load_places(self._store, *takes)

    def _take_place(self, name: bytes, record: PlaceRecord) -> None:
        if len(self._places) >= MAX_PLACES:
            raise DecodeError("more places are kept than there are")
        place = self._made(name, record.second, record.waybill)
        place.queue.resume(record.begins, record.patience, record.last_there)
        place.handed_in = record.last_there
        self._add(place)

    def _take_letter(self, name: bytes, came: int, key: bytes, sealed: bytes) -> None:
        place = self._places[name]
        letter = self._opened(place, sealed)
        place.queue.restore(letter, came)
        place.letters.setdefault(letter.due, []).append(key)

    def _take_block(self, name: bytes, round_: int) -> None:
        self._places[name].listed.add(round_)

    def _take_bills(self, name: bytes, record: BillsRecord) -> None:
        lanes = LanePorter(self._rules, record.bills, self._env.randomness)
        self._set_bills(self._places[name], lanes, record.told)

    def _take_lanes(self, name: bytes, round_: int) -> None:
        self._places[name].laned.add(round_)

    def find(self, name: bytes) -> PorterPlace | None:
        """Return a place by its name."""
        return self._places.get(name)

    def of_waybill(self, name: bytes, second: RelayId) -> PorterPlace | None:
        """Return the place whose waybill a second names."""
        place = self._by_waybill.get(name)
        return place if place is not None and place.second == second else None

    def of_bill(self, name: bytes) -> PorterPlace | None:
        """Return the place that has a lane of this bill."""
        return self._by_bill.get(name)

    def take_bills(self, place: PorterPlace, frame: CoverBills) -> None:
        """Take the bills of a daemon's lanes; durable soon.

        Others than before are passed over until a day after these came: each is a place at its second, for
        two days, and a stamp. Raises `DecodeError` where it tells more than a round has, or not those of its
        lanes.
        """
        if place.billed_in == self._now:
            raise DecodeError("a daemon tells its bills twice in a round")
        place.billed_in = self._now
        record = BillsRecord(self._now, tuple((one.second, one.bill) for one in frame.bills))
        lanes = LanePorter(self._rules, record.bills, self._env.randomness)
        if place.lanes is not None and lanes.names == place.lanes.names:
            return
        if place.lanes is not None and self._now - place.changed_in < self._rules.held_rounds:
            self._counters.add("blocks_refused")
            return
        if any(self._by_bill.get(name, place) is not place for name in lanes.names):
            raise DecodeError("a daemon tells the bill of another")
        self._set_bills(place, lanes, self._now)
        self._store.write_soon(bills_change(place.name, record))

    def _set_bills(self, place: PorterPlace, lanes: LanePorter, told: int) -> None:
        self._forget_bills(place)
        place.lanes, place.changed_in = lanes, told
        place.unshown.clear()
        self._by_bill.update(dict.fromkeys(lanes.names, place))

    def _forget_bills(self, place: PorterPlace) -> None:
        for name in place.lanes.names if place.lanes is not None else ():
            self._by_bill.pop(name, None)

    def take(self, name: bytes, second: RelayId, waybill: bytes) -> PorterPlace:
        """Give a new daemon a place; durable soon.

        Raises `Refusal` ("quota") where there is none, or none for its second.
        """
        if len(self._places) >= MAX_PLACES or waybill_name(waybill) in self._by_waybill:
            raise Refusal("quota")
        # One part less than the second takes: of places that have ended it knows the waybills for a day.
        room = (OF_ONE_SECOND - 1) * MAX_WAYBILLS_OF_PORTER // self._rules.width
        if sum(place.second == second for place in self) >= room:
            raise Refusal("quota")
        place = self._made(name, second, waybill)
        self._add(place)
        self._store.write_soon(place_change(name, place.record))
        return place

    def _made(self, name: bytes, second: RelayId, waybill: bytes) -> PorterPlace:
        queue = PorterQueue(self._rules, self._now, self._env.randomness)
        return PorterPlace(name, second, waybill, queue, PorterBlocks(self._rules, self._now))

    def _add(self, place: PorterPlace) -> None:
        self._places[place.name] = place
        self._by_waybill[place.waybill_name] = place

    def hand_in(self, place: PorterPlace, frame: CoverLetters) -> None:
        """Take a daemon's letters of a round; durable soon.

        Raises a `PeerError` where it hands in more than a round has, or what is not for its way.
        """
        if frame.round <= place.handed_in:
            raise DecodeError("a daemon hands in more letters than a round has")
        if abs(frame.round - self._now) > 1:
            raise DecodeError("letters are handed in for another round")
        place.handed_in = frame.round
        changes = []
        for index, sealed in enumerate(frame.letters):
            letter = self._opened(place, sealed)
            try:
                waits = place.queue.take(letter, frame.round)
            except Refusal:
                self._counters.add("letters_refused")
                continue
            if waits:
                key = letter_key(place.name, frame.round, index)
                place.letters.setdefault(letter.due, []).append(key)
                changes.append(letter_change(key, sealed))
        self._store.write_soon(place_change(place.name, place.record), *changes)

    def close_round(self, place: PorterPlace, now: int) -> list[Change]:
        """Settle a round's blocks, and forget the letters that are passed in it; return the changes."""
        changes = [
            letter_change(key, None)
            for due in [due for due in place.letters if due <= now]
            for key in place.letters.pop(due)
        ]
        if (block := place.blocks.close(now)) is not None:
            place.listed.add(now)
            changes.append(block_change(place.name, now, block))
        if place.lanes is not None:
            place.laned.add(now)
            changes.append(lanes_change(place.name, now, place.lanes.end_round()))
        for old in [old for old in place.listed if old < place.blocks.oldest]:
            place.listed.remove(old)
            changes.append(block_change(place.name, old, None))
        for old in [old for old in place.laned if old < place.blocks.oldest]:
            place.laned.remove(old)
            changes.append(lanes_change(place.name, old, None))
        return changes

    def end(self, place: PorterPlace) -> list[Change]:
        """Be done with a place; return the changes that forget it."""
        del self._places[place.name], self._by_waybill[place.waybill_name]
        if place.link is not None:
            place.link.cancel()
        letters = [letter_change(key, None) for keys in place.letters.values() for key in keys]
        blocks = [block_change(place.name, round_, None) for round_ in place.listed]
        lanes = [lanes_change(place.name, round_, None) for round_ in place.laned]
        self._forget_bills(place)
        return [place_change(place.name, None), bills_change(place.name, None), *letters, *blocks, *lanes]

    def close(self) -> None:
        """End the links of all daemons: other rules hold."""
        for place in self:
            if place.link is not None:
                place.link.cancel()

    async def block(self, place: PorterPlace, round_: int) -> tuple[int, bytes] | None:
        """Return the list that the blocks of a round have, and of which round it is, if they have any."""
        return await kept_block(self._store, place.name, round_) if round_ in place.listed else None

    async def lane_blocks(self, place: PorterPlace, round_: int) -> list[bytes]:
        """Return what the blocks of a round have of the daemon's lanes; random where nothing is kept."""
        kept = await kept_lanes(self._store, place.name, round_) if round_ in place.laned else None
        return kept or [self._env.randomness(BLOCK) for _ in range(LANES)]

    def _opened(self, place: PorterPlace, sealed: bytes) -> OpenedLetter:
        letter = open_letter(self._rules, Stage.PORTER, self._relay, self._key, sealed)
        if letter.onward != place.second:
            raise AuthenticationError("a letter names another second than its daemon's")
        return letter
