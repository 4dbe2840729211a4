"""What a relay has of its own shards, and as a guide of all, on disk and for whoever asks.

Each part is as an authority showed it. A relay cannot change it: whoever asks checks it against a head.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardAnswer,
    ShardRequest,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store, record_reader

LEAVES_SHOWN = 6  # epochs whose leaves are kept: the coming one, and those by which seats are kept before
"""A day's slices and pieces are kept as long as their day."""

_KIND = RecordKind(
    "shard-part",
    StateOwner.RELAY,
    holds="its shards: slices, leaves, pieces of the guide",
    lifetime=f"until their day has lapsed; leaves {LEAVES_SHOWN} epochs",
)
_AT_ONCE = 16  # records read at once: a slice has 150 kB

Shown = ShownLeaf | ShownSlice | ShownPiece


class _StoredPart(msgspec.Struct, frozen=True, array_like=True):
    asked: ShardRequest
    shown: Shown


_decode_part = record_reader(_StoredPart, "part of a network in shards")


class ShardServer:
    """The parts that one relay holds and shows, by what is asked for them."""

    def __init__(self, store: Store, counters: Counters) -> None:
        self._store = store
        self._counters = counters
        self._parts: dict[ShardRequest, Shown] = {}

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await restore(self._store, _KIND, self._take, at_once=_AT_ONCE)

    def _take(self, key: bytes, value: bytes) -> None:
        part = _decode_part(value)
        if encode(part.asked) != key:
            raise DecodeError("a part is kept under another's name")
        self._parts[part.asked] = part.shown

    def answer(self, request: ShardRequest) -> ShardAnswer:
        """Return what is shown to a stranger."""
        part = self._parts.get(request)
        self._counters.add("shard_parts_shown" if part is not None else "shard_parts_not_shown")
        return part if part is not None else ShardUnavailable()

    def has_parts(self) -> bool:
        """Tell whether anything is held."""
        return bool(self._parts)

    def leaf(self, epoch: int, day: int, shard: int) -> ShownLeaf | None:
        """Return the leaf of an epoch, if it is held."""
        part = self._parts.get(AskLeaf(epoch, day, shard))
        return part if isinstance(part, ShownLeaf) else None

    def slice(self, day: int, shard: int) -> ShownSlice | None:
        """Return a slice, if it is held."""
        part = self._parts.get(AskSlice(day, shard))
        return part if isinstance(part, ShownSlice) else None

    def has_piece(self, day: int, number: int) -> bool:
        """Tell whether a piece of the guide is held."""
        return AskPiece(day, number) in self._parts

    async def keep(self, request: ShardRequest, part: Shown) -> None:
        """Hold a part, which was checked; durable on return. Of a shard's leaves the oldest goes."""
        old: list[ShardRequest] = []
        if isinstance(request, AskLeaf):
            old = [
                held for held in self._leaves_beside(request) if held.epoch <= request.epoch - LEAVES_SHOWN
            ]
        await self._store.write(
            *(Change(_KIND, encode(held), None) for held in old),
            Change(_KIND, encode(request), encode(_StoredPart(request, part))),
        )
        for held in old:
            self._parts.pop(held, None)
        self._parts[request] = part

    async def forget(self, staying: Collection[int]) -> None:
        """Delete the parts of all days but these."""
        old = [request for request in self._parts if request.day not in staying]
        for request in old:
            del self._parts[request]
        if old:
            await self._store.write(*(Change(_KIND, encode(request), None) for request in old))

    def _leaves_beside(self, leaf: AskLeaf) -> list[AskLeaf]:
        return [
            held
            for held in self._parts
            if isinstance(held, AskLeaf) and (held.day, held.shard) == (leaf.day, leaf.shard)
        ]
