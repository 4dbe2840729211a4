"""The lanes of boxes: which of a host's boxes are given in blocks, and are never pushed over a link."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.lane_papers import LANE_PAPER
from hushcast_protocol.overlay.hops import box_hop
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage
from hushcast_runtime.storage.store import record_reader

# Lanes that one host gives blocks to, 600 KB a day each: 10,000 daemons have 60 at each of 500 relays.
MAX_BOX_LANES = 256

_LANE = RecordKind(
    "box-lane",
    StateOwner.RELAY,
    holds="errands of boxes whose owners have cover: the second, the lane and its key, sealed as they came",
    lifetime="until the errand's last round, within 93 days, or the owner is done with the box",
    bound=f"{MAX_BOX_LANES}",
)
_BOX = 32  # bytes of its key


class BoxErrand(msgspec.Struct, frozen=True, array_like=True):
    """An errand as it lies in the store."""

    until: Counter
    """The last round for which it holds."""
    sealed: Annotated[bytes, msgspec.Meta(min_length=LANE_PAPER, max_length=LANE_PAPER)]


_decode = record_reader(BoxErrand, "errand of a lane")


class BoxLanes:
    """Those of one host."""

    def __init__(self, spool: Spool, context: Context) -> None:
        self._spool = spool
        self._store = context.store
        self._errands: dict[bytes, BoxErrand] = {}
        self.hears: Callable[[bytes, SpooledMessage], None] | None = None
        """Hears what comes for which box, while the network has cover; all of it waits in the spool, too."""

    def __len__(self) -> int:
        return len(self._errands)

    def __contains__(self, box: object) -> bool:
        return box in self._errands

    def __iter__(self) -> Iterator[tuple[bytes, BoxErrand]]:
        return iter(list(self._errands.items()))

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await restore(self._store, _LANE, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        if len(self._errands) >= MAX_BOX_LANES:
            raise DecodeError("more lanes are kept than a host has")
        self._errands[sized(key, _BOX)] = _decode(value)

    def fullness(self) -> float:
        """Return the share (0 to 1) of the room for lanes that is taken."""
        return len(self._errands) / MAX_BOX_LANES

    def check(self, box: bytes, errand: BoxErrand) -> None:
        """Make sure that a box may have an errand: raise `Refusal` "quota" where there are too many.

        "day" where it ends before the one that the box has: it was overtaken on its way.
        """
        if (known := self._errands.get(box)) is not None:
            if errand.until < known.until:
                raise Refusal("day")
        elif len(self._errands) >= MAX_BOX_LANES:
            raise Refusal("quota")

    def get(self, box: bytes) -> BoxErrand | None:
        """Return the errand of a box, if it has one."""
        return self._errands.get(box)

    def keep(self, box: bytes, errand: BoxErrand) -> None:
        """Give a box this errand, as was checked; durable with the next commit."""
        self._errands[box] = errand
        self._store.write_soon(Change(_LANE, box, encode(errand)))

    def forget(self, box: bytes) -> None:
        """Give nothing more for a box."""
        if self._errands.pop(box, None) is not None:
            self._store.write_soon(Change(_LANE, box, None))

    def came(self, box: bytes, item: SpooledMessage) -> None:
        """Hear of a message that was spooled for a box with a lane."""
        if self.hears is not None:
            self.hears(box, item)

    def holds(self, place: bytes) -> bool:
        """Tell whether a message still waits at its place."""
        return place in self._spool

    async def read(self, place: bytes) -> Message | None:
        """Return the message at a place, if it still waits."""
        return await self._spool.read(place)

    async def waiting(self, box: bytes) -> AsyncIterator[SpooledMessage]:
        """Yield what waits for a box, in the order in which it came."""
        hop = box_hop(box)
        items = await self._spool.waiting(hop, None, READ_AT_ONCE)
        while items:
            for item in items:
                yield item
            items = await self._spool.waiting(hop, items[-1], READ_AT_ONCE)
