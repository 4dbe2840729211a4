"""The archive: the last heads, each with the descriptors of the relays that it stands for, to be served.

On a day of shards a head is served alone. What it stands for is asked for in parts: how each shard stands in
an epoch, which is kept with its head, and the shards themselves, which are those of a day (`shard_days.py`).
So are the relays that may be keepers on each day (`candidate_days.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hushcast_directory.server.candidate_days import CandidateDays
from hushcast_directory.server.former_rosters import forgotten
from hushcast_directory.server.shard_days import ShardDays
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_answers import is_cut
from hushcast_protocol.authorities.heads import HEADS_KEPT, CertifiedHead, Head, decode_head
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import RosterEntry
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.shard_cut import Leaves
from hushcast_protocol.shards.shard_requests import (
    AskCandidates,
    AskLeaf,
    PartAnswer,
    PartRequest,
    ShardUnavailable,
    ShownLeaf,
)
from hushcast_protocol.shards.slices import FindDescriptor
from hushcast_runtime.environment import Compute
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Store, record_reader

CATCH_UP = 3  # epochs after an absence of the directory in which relays may renew and none falls out

_SHOWN = RecordKind(
    "agreed",
    StateOwner.DIRECTORY,
    holds="heads with all that they stand for",
    lifetime="until there are newer ones",
    bound=f"{HEADS_KEPT} epochs",
)
_LEAVES = RecordKind(
    "leaves",
    StateOwner.DIRECTORY,
    holds="leaves of the shards of an epoch",
    lifetime="as long as its head",
)
_AT_ONCE = 4  # records read at once: heads of a large network have megabytes with what they stand for


class ArchivedHead(msgspec.Struct, frozen=True, array_like=True):
    """A head and all that it stands for; on a day of shards these are served apart."""

    certified: CertifiedHead
    listing: Listing | None = None
    descriptors: tuple[Signed, ...] = ()
    """In the order of the listing's seats."""

    @property
    def entries(self) -> tuple[RosterEntry, ...]:
        """The relays with a seat as daemons get them."""
        if self.listing is None:
            return ()
        seats = zip(self.descriptors, self.listing.seats, strict=True)
        return tuple(RosterEntry(signed, since) for signed, (*_, since) in seats)


_Bodies = tuple[tuple[int, tuple[bytes, ...]], ...]
"""The leaves of an epoch, by day."""

_decode: Callable[[bytes], ArchivedHead] = record_reader(ArchivedHead, "head")
_decode_leaves: Callable[[bytes], _Bodies] = record_reader(_Bodies, "leaves")


class _Pending(NamedTuple):
    certified: CertifiedHead
    listing: Listing
    leaves: Mapping[int, Leaves]
    found: dict[bytes, Signed]
    missing: set[bytes]


class Archive:
    """Heads with what they stand for, in memory as it is kept, and in a store."""

    def __init__(self, network: bytes, store: Store, compute: Compute) -> None:
        """`network` is its id."""
        self._store = store
        self._days = ShardDays(network, store, compute)
        self._candidates = CandidateDays(network, store, compute)
        self._shown: dict[int, bytes] = {}
        self._leaves: dict[int, dict[int, Leaves]] = {}
        self._pending: _Pending | None = None

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await self._days.load()
        await self._candidates.load()
        await restore(self._store, _SHOWN, self._take_shown, at_once=_AT_ONCE)
        await restore(self._store, _LEAVES, self._take_leaves, at_once=_AT_ONCE)

    def _take_shown(self, key: bytes, value: bytes) -> None:
        if epoch_key(decode_head(_decode(value).certified.head).epoch) != key:
            raise DecodeError("a head is kept under another epoch")
        self._shown[number(key)] = value

    def _take_leaves(self, key: bytes, value: bytes) -> None:
        self._leaves[number(key)] = {day: Leaves(bodies) for day, bodies in _decode_leaves(value)}

    @property
    def epochs(self) -> list[int]:
        """The epochs whose heads are kept, in order."""
        return sorted(self._shown)

    @property
    def missing(self) -> set[bytes]:
        """Digests of descriptors without which the newest head, or a part of a day, cannot be served."""
        missing = self._days.missing | self._candidates.missing
        return missing if self._pending is None else missing | self._pending.missing

    def has_gap(self, epoch: int) -> bool:
        """Tell whether one of the heads just before an epoch is missing: relays could not renew, perhaps."""
        held = self.epochs
        return bool(held) and any(known not in held for known in range(max(held[0], epoch - CATCH_UP), epoch))

    def heads(self, epochs: Iterable[int]) -> list[Head]:
        """Return the heads of epochs that are kept."""
        return [decode_head(_decode(self._shown[epoch]).certified.head) for epoch in epochs]

    def forget(self, epochs: Iterable[int]) -> list[Change]:
        """Serve these heads no more, nor one that waits for descriptors; return what is to be written."""
        self._pending = None
        gone = set(epochs)
        changes = self._drop(sorted(gone))
        self._candidates.forget({day_of(one) for one in gone} - {day_of(one) for one in self._shown})
        return changes

    def after(self, epoch: int | None, latest: float = math.inf) -> tuple[ArchivedHead | None, bool]:
        """Return the first head after an epoch, or the newest; and whether there are later ones.

        Those after `latest` are passed over.
        """
        later = [known for known in self.epochs if (epoch is None or known > epoch) and known <= latest]
        if not later:
            return None, False
        chosen = later[-1] if epoch is None else later[0]
        return _decode(self._shown[chosen]), chosen != later[-1]

    def part(self, request: PartRequest) -> PartAnswer:
        """Return a part of the network in shards, or a candidate list, if it is here."""
        if isinstance(request, AskCandidates):
            return self._candidates.part(request)
        if not isinstance(request, AskLeaf):
            return self._days.part(request)
        leaves = self._leaves.get(request.epoch, {}).get(request.day)
        if leaves is None or request.shard >= len(leaves.bodies):
            return ShardUnavailable()
        return ShownLeaf(leaves.bodies[request.shard], leaves.tree.path(request.shard))

    def find(self, known: bytes) -> Signed | None:
        """Return a descriptor of the newest head, or of a part of a day, by its digest."""
        found = None if self._pending is None else self._pending.found.get(known)
        return found or self._days.find(known) or self._candidates.find(known)

    async def begin(self, certified: CertifiedHead, listing: Listing, find: FindDescriptor) -> bool:
        """Serve a head once all its descriptors are there; tell whether that is now. Durable on return.

        On a day of shards it needs none: whoever wants a slice that is not whole here asks somebody else.
        """
        head = decode_head(certified.head)

        def find_any(known: bytes) -> Signed | None:
            return find(known) or self.find(known)

        is_shown = listing.epoch not in self._shown and await self._begin(certified, head, listing, find)
        await self._candidates.follow(head, listing, find_any)
        return is_shown

    async def _begin(
        self, certified: CertifiedHead, head: Head, listing: Listing, find: FindDescriptor
    ) -> bool:
        made = await self._days.made(listing, find)
        # From here on nothing is waited for until it is written: else what came meanwhile would be lost.
        changes, leaves = self._days.follow(listing.epoch, made), made.leaves
        if is_cut(head):
            self._pending = None
            await self._show(listing.epoch, ArchivedHead(certified), leaves, changes)
            return True
        if changes:
            await self._store.write(*changes)
        digests = [known for _, known, *_ in listing.seats]
        found = {known: signed for known in digests if (signed := find(known)) is not None}
        self._pending = _Pending(certified, listing, leaves, found, set(digests) - found.keys())
        return await self._complete()

    async def supply(self, given: Mapping[bytes, Signed]) -> bool:
        """Take descriptors that were checked, by digest; tell whether a head can be served now."""
        self._candidates.supply(given)
        changes = self._days.supply(given)
        if changes:
            await self._store.write(*changes)
        pending = self._pending
        if pending is None or pending.missing.isdisjoint(given):
            return False
        pending.found.update({known: given[known] for known in pending.missing & given.keys()})
        pending.missing.difference_update(given)
        return await self._complete()

    async def _complete(self) -> bool:
        pending = self._pending
        if pending is None or pending.missing:
            return False
        listing, found = pending.listing, pending.found
        descriptors = tuple(found[known] for _, known, *_ in listing.seats)
        shown = ArchivedHead(pending.certified, listing, descriptors)
        await self._show(listing.epoch, shown, pending.leaves, [])
        return True

    async def _show(
        self, epoch: int, shown: ArchivedHead, leaves: Mapping[int, Leaves], changes: Iterable[Change]
    ) -> None:
        key, record = epoch_key(epoch), encode(shown)
        bodies: _Bodies = tuple((day, one.bodies) for day, one in leaves.items())
        await self._store.write(
            *changes,
            Change(_SHOWN, key, record),
            *([Change(_LEAVES, key, encode(bodies))] if bodies else []),
        )
        self._shown[epoch] = record
        self._leaves[epoch] = dict(leaves)
        # Only now, and before anything is waited for: another head may have come to be shown meanwhile.
        if old := self._drop(self.epochs[:-HEADS_KEPT]):
            await self._store.write(*old, *await forgotten(self._store))

    def _drop(self, epochs: Sequence[int]) -> list[Change]:
        for epoch in epochs:
            del self._shown[epoch]
            self._leaves.pop(epoch, None)
        return [Change(kind, epoch_key(known), None) for known in epochs for kind in (_SHOWN, _LEAVES)]


def epoch_key(epoch: int) -> bytes:
    """Return the key of an epoch's record."""
    return epoch.to_bytes(8, "big")


def epoch_of(certified: CertifiedHead) -> int:
    """Return the epoch of a head."""
    return decode_head(certified.head).epoch
