"""Places: the daemons that one porter serves, each with its queue and its blocks; on disk."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from hushcast_overlay.relay.cover.porter_records import (
    MAX_PLACES,
    PlaceRecord,
    block_change,
    kept_block,
    letter_change,
    letter_key,
    load_places,
    place_change,
)
from hushcast_overlay.relay.identity import Identity
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import CoverLetters
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letters import OpenedLetter, Stage, open_letter
from hushcast_protocol.cover.porter_blocks import PorterBlocks
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_protocol.cover.waybills import waybill_name
from hushcast_runtime.context import Context
from hushcast_runtime.storage.store import Change


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

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[PorterPlace]:
        return iter(list(self._places.values()))

    @property
    def _now(self) -> int:
        return self._rules.round_at(self._env.now())

    async def load(self) -> None:
        """Read back what was kept before a restart, judged as when it came."""
        await load_places(self._store, self._take_place, self._take_letter, self._take_block)

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

    def find(self, name: bytes) -> PorterPlace | None:
        """Return a place by its name."""
        return self._places.get(name)

    def of_waybill(self, name: bytes, second: RelayId) -> PorterPlace | None:
        """Return the place whose waybill a second names."""
        place = self._by_waybill.get(name)
        return place if place is not None and place.second == second else None

    def take(self, name: bytes, second: RelayId, waybill: bytes) -> PorterPlace:
        """Give a new daemon a place; durable soon. Raises `Refusal` ("quota") where there is none."""
        if len(self._places) >= MAX_PLACES or waybill_name(waybill) in self._by_waybill:
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
        for old in [old for old in place.listed if old < place.blocks.oldest]:
            place.listed.remove(old)
            changes.append(block_change(place.name, old, None))
        return changes

    def end(self, place: PorterPlace) -> list[Change]:
        """Be done with a place; return the changes that forget it."""
        del self._places[place.name], self._by_waybill[place.waybill_name]
        if place.link is not None:
            place.link.cancel()
        letters = [letter_change(key, None) for keys in place.letters.values() for key in keys]
        blocks = [block_change(place.name, round_, None) for round_ in place.listed]
        return [place_change(place.name, None), *letters, *blocks]

    def close(self) -> None:
        """End the links of all daemons: other rules hold."""
        for place in self:
            if place.link is not None:
                place.link.cancel()

    async def block(self, place: PorterPlace, round_: int) -> tuple[int, bytes] | None:
        """Return the list that the blocks of a round have, and of which round it is, if they have any."""
        return await kept_block(self._store, place.name, round_) if round_ in place.listed else None

    def _opened(self, place: PorterPlace, sealed: bytes) -> OpenedLetter:
        letter = open_letter(self._rules, Stage.PORTER, self._relay, self._key, sealed)
        if letter.onward != place.second:
            raise AuthenticationError("a letter names another second than its daemon's")
        return letter
