"""The candidate lists of each day as one authority serves them, for as long as heads tell of them.

They are made when the first head of a day is published, by the descriptors of then; what is missing is asked
of the other authorities. Who missed that head, or was started again before all was there, has none of the
day: others have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.candidate_days import candidate_day
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.candidate_root import MAX_ROOTS
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.candidates import CandidateDay
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    PartAnswer,
    ShardUnavailable,
    ShownCandidates,
)
from hushcast_protocol.shards.slices import FindDescriptor
from hushcast_runtime.environment import Compute
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import Store, record_reader

_LISTS = RecordKind(
    "candidate-lists",
    StateOwner.DIRECTORY,
    holds="the relays from which the keepers of a day are drawn, by shard",
    lifetime="as long as heads tell of the day",
    bound=f"{MAX_ROOTS} days",
)
_AT_ONCE = 4  # records read at once: one has 0.3 MB at most

_decode = record_reader(ShownCandidates, "candidate list")


@dataclass
class _Unfinished:
    """A day whose lists are not all there yet."""

    made: CandidateDay
    shards: set[int]
    """Those that are not."""
    held: dict[bytes, Signed] = field(default_factory=dict)

    def missing(self) -> set[bytes]:
        return {known for shard in self.shards for _, known in self.made.shards[shard]} - self.held.keys()


class CandidateDays:
    """The candidate lists of the days of which the newest head tells."""

    def __init__(self, network: bytes, store: Store, compute: Compute) -> None:
        """`network` is its id."""
        self._network = network
        self._store = store
        self._compute = compute
        self._lists: dict[tuple[int, int], ShownCandidates] = {}
        self._unfinished: _Unfinished | None = None

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await restore(self._store, _LISTS, self._take_up, at_once=_AT_ONCE)

    def _take_up(self, key: bytes, value: bytes) -> None:
        sized(key, 10)
        self._lists[number(key[:8]), int.from_bytes(key[8:], "big")] = _decode(value)

    @property
    def missing(self) -> set[bytes]:
        """Digests of descriptors without which some list cannot be served."""
        return set() if self._unfinished is None else self._unfinished.missing()

    def find(self, known: bytes) -> Signed | None:
        """Return a descriptor of a list that is not whole yet, by its digest."""
        return None if self._unfinished is None else self._unfinished.held.get(known)

    def part(self, request: AskCandidates) -> PartAnswer:
        """Return a list, if it is here."""
        return self._lists.get((request.day, request.shard)) or ShardUnavailable()

    async def follow(self, head: Head, listing: Listing, find: FindDescriptor) -> None:
        """Serve the days of which a head tells, and no others; durable on return.

        `find` is asked for descriptors, in a thread.
        """
        today = day_of(head.epoch)
        told = {one.day: one for one in inside_of(head).candidates}
        self.forget({day for day, _ in self._lists} - told.keys())
        if today in told and not any(day == today for day, _ in self._lists):
            made = await self._compute(self._made, head, listing)
            if made.root != told[today]:
                return  # this is not the day's first head: others have the lists
            self._unfinished = _Unfinished(made, set(range(len(made.shards))))
            await self._compute(self._find, self._unfinished, find)
            self._finish(self._unfinished)
            await self._store.write()

    def _made(self, head: Head, listing: Listing) -> CandidateDay:
        made = candidate_day(self._network, head.previous, listing, head.authorities.keeping.keepers)
        _ = made.root  # once, and here
        return made

    def _find(self, unfinished: _Unfinished, find: FindDescriptor) -> None:
        found = {known: find(known) for known in unfinished.missing()}
        unfinished.held |= {known: signed for known, signed in found.items() if signed is not None}

    def supply(self, given: Mapping[bytes, Signed]) -> None:
        """Take descriptors that were checked, by digest."""
        if (unfinished := self._unfinished) is not None and (found := unfinished.missing() & given.keys()):
            unfinished.held |= {known: given[known] for known in found}
            self._finish(unfinished)

    def _finish(self, unfinished: _Unfinished) -> None:
        """Serve and keep the lists of which all descriptors are there."""
        made = unfinished.made
        for shard in list(unfinished.shards):
            if (body := made.shown(shard, unfinished.held.get)) is not None:
                shown = ShownCandidates(body, made.tree.path(shard))
                self._lists[made.day, shard] = shown
                self._store.write_soon(Change(_LISTS, _key(made.day, shard), encode(shown)))
                unfinished.shards.discard(shard)
        if not unfinished.shards:
            self._unfinished = None

    def forget(self, days: Collection[int]) -> None:
        """Serve these days no more."""
        for day, shard in [one for one in self._lists if one[0] in days]:
            del self._lists[day, shard]
            self._store.write_soon(Change(_LISTS, _key(day, shard), None))


def _key(day: int, shard: int) -> bytes:
    return day.to_bytes(8, "big") + shard.to_bytes(2, "big")
