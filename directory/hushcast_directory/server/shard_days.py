"""The shards of each day as one authority serves them, from the cut on until the day after is over.

Slices have the descriptors by which relays were listed when the network was cut, though these sign newer ones
each epoch. So they are kept, in memory and on disk; what is missing is asked of the other authorities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.listing import ListedCut, Listing
from hushcast_protocol.authorities.shard_draw import cut_of, leaves_of
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.shard_cut import Leaves
from hushcast_protocol.shards.shard_requests import (
    AskPiece,
    AskSlice,
    ShardAnswer,
    ShardUnavailable,
    ShownPiece,
    ShownSlice,
)
from hushcast_protocol.shards.slices import FindDescriptor
from hushcast_runtime.environment import Compute
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Store, record_reader

_CUT = RecordKind(
    "cut",
    StateOwner.DIRECTORY,
    holds="which relays are in which shard of a day",
    lifetime="until the day after it is over",
)
_HELD = RecordKind(
    "cut-descriptors",
    StateOwner.DIRECTORY,
    holds="descriptors of the relays of a cut, by shard",
    lifetime="as long as their cut",
)
_AT_ONCE = 1  # record read at once: a shard's descriptors take 5 to 30 ms

_decode_drawn: Callable[[bytes], ListedCut] = record_reader(ListedCut, "cut")
_decode_held: Callable[[bytes], tuple[Signed, ...]] = record_reader(tuple[Signed, ...], "descriptors")


class _Day:
    """One day's shards, and those descriptors of them that are here."""

    def __init__(self, network: bytes, drawn: ListedCut) -> None:
        self.drawn = drawn
        self.cut = cut_of(network, drawn)
        _ = self.cut.guides  # whoever asks for a piece first does not wait for all
        self.held: dict[bytes, Signed] = {}
        self.shard_of = {
            known: number for number, shard in enumerate(self.cut.shards) for _, known, _ in shard
        }
        self.missing = set(self.shard_of)

    def supply(self, given: Mapping[bytes, Signed]) -> set[int]:
        """Take what is missing of these, by digest; return the shards that have more of it now."""
        found = self.missing & given.keys()
        self.held |= {known: given[known] for known in found}
        self.missing -= found
        return {self.shard_of[known] for known in found}

    def find(self, find: FindDescriptor) -> set[int]:
        """Take what is missing and can be found; return as `supply`."""
        found = {known: find(known) for known in self.missing}
        return self.supply({known: signed for known, signed in found.items() if signed is not None})

    def records(self, shards: Iterable[int]) -> list[Change]:
        """Return what is to be kept of some shards."""
        return [
            Change(
                _HELD,
                _key(self.drawn.day) + shard.to_bytes(2, "big"),
                encode(
                    tuple(self.held[known] for _, known, _ in self.cut.shards[shard] if known in self.held)
                ),
            )
            for shard in sorted(shards)
        ]


class PreparedDays(NamedTuple):
    """What is made of a listing, by day."""

    days: dict[int, _Day]
    leaves: dict[int, Leaves]
    """How all relays stand in the listing's epoch."""
    changes: dict[int, list[Change]]
    """What is to be kept of the days that were not held."""


class ShardDays:
    """The shards of some days: at most those of yesterday, of now and of tomorrow."""

    def __init__(self, network: bytes, store: Store, compute: Compute) -> None:
        """`network` is its id."""
        self._network = network
        self._store = store
        self._compute = compute
        self._days: dict[int, _Day] = {}

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        cuts: list[ListedCut] = []

        def take(key: bytes, value: bytes) -> None:
            drawn = _decode_drawn(value)
            if _key(drawn.day) != key:
                raise DecodeError("a cut is kept under another day")
            cuts.append(drawn)

        await restore(self._store, _CUT, take, at_once=_AT_ONCE)
        for drawn in cuts:
            self._days[drawn.day] = await self._compute(_Day, self._network, drawn)
        await restore(self._store, _HELD, self._take_held, at_once=_AT_ONCE)

    def _take_held(self, key: bytes, value: bytes) -> None:
        held = _by_digest(_decode_held(value))
        if (day := self._days.get(number(key[:-2]))) is not None:
            day.supply(held)

    @property
    def missing(self) -> set[bytes]:
        """Digests of descriptors without which some slice cannot be served."""
        return set[bytes]().union(*(day.missing for day in self._days.values()))

    def find(self, known: bytes) -> Signed | None:
        """Return a descriptor of a slice by its digest."""
        return next((day.held[known] for day in self._days.values() if known in day.held), None)

    async def made(self, listing: Listing, find: FindDescriptor) -> PreparedDays:
        """Return what is made of a listing, to be followed: some 0.2 s of a thread for 16,384 relays.

        `find` is asked for the descriptors, in that thread. What is held already is among it as it is.
        """
        return await self._compute(self._made, listing, find)

    def _made(self, listing: Listing, find: FindDescriptor) -> PreparedDays:
        made = PreparedDays({}, {}, {})
        for drawn in listing.shards:
            if drawn.bits:
                day = self._days.get(drawn.day)
                if day is None or day.drawn != drawn:
                    day = _Day(self._network, drawn)
                    kept = day.records(day.find(find))
                    made.changes[drawn.day] = [Change(_CUT, _key(drawn.day), encode(drawn)), *kept]
                made.days[drawn.day] = day
                made.leaves[drawn.day] = leaves_of(day.cut, listing.seats)
        return made

    def follow(self, epoch: int, made: PreparedDays) -> list[Change]:
        """Serve these days from an epoch on, and forget others; return what is to be kept.

        Another cut of the same day takes the place of one that was made by a head which nobody followed.
        """
        changes = []
        for day, fresh in made.changes.items():
            if day in self._days:
                changes += self._without(day)
            self._days[day] = made.days[day]
            changes += fresh
        for over in [day for day in self._days if day not in made.days and day < day_of(epoch) - 1]:
            changes += self._without(over)
        return changes

    def supply(self, given: Mapping[bytes, Signed]) -> list[Change]:
        """Take descriptors that were checked, by digest; return what is to be kept."""
        return [
            change
            for day in self._days.values()
            if not day.missing.isdisjoint(given)
            for change in day.records(day.supply(given))
        ]

    def part(self, request: AskSlice | AskPiece) -> ShardAnswer:
        """Return a slice or a piece of the guide, unless something of it is missing."""
        day = self._days.get(request.day)
        if day is None:
            return ShardUnavailable()
        made = day.cut
        if isinstance(request, AskSlice):
            body = made.slice(request.shard, day.held.get) if request.shard < len(made.shards) else None
            return ShardUnavailable() if body is None else ShownSlice(body)
        body = made.piece(request.number, day.held.get) if request.number < len(made.pieces) else None
        return ShardUnavailable() if body is None else ShownPiece(body, made.guides.path(request.number))

    def _without(self, day: int) -> list[Change]:
        """Forget a day; return what is to be deleted."""
        gone = self._days.pop(day)
        keys = [_key(day) + shard.to_bytes(2, "big") for shard in range(len(gone.cut.shards))]
        return [Change(_CUT, _key(day), None), *(Change(_HELD, key, None) for key in keys)]


def _by_digest(descriptors: Iterable[Signed]) -> dict[bytes, Signed]:
    """Return descriptors that were kept; one that the disk has damaged is missing, and asked for again."""
    found = {}
    for signed in descriptors:
        with suppress(DecodeError):
            found[descriptor_digest(signed.body)] = signed
    return found


def _key(day: int) -> bytes:
    return day.to_bytes(8, "big")
