"""The boxes that this relay keeps, on disk: which there are, what waits in them, and what gave way."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import trio

from hushcast_overlay.relay.boxes.box_lanes import BoxLanes
from hushcast_overlay.relay.boxes.sought_trunks import SoughtTrunks
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_protocol.base.crypto.proof_of_work import NEEDED_FROM
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, encode
from hushcast_protocol.content.hops import HOP_SIZE, Hop
from hushcast_protocol.cover.lane_box import LANE_DAYS
from hushcast_protocol.overlay.box_frames import SoughtTrunk
from hushcast_protocol.overlay.box_shares import MAX_ALL_BOXES, MAX_BOXES, BoxShares
from hushcast_protocol.overlay.hops import box_hop, is_box, key_of
from hushcast_protocol.overlay.leases import Lease
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.spool import MAX_SPOOL, REFERENCE, Spool, SpooledMessage
from hushcast_runtime.storage.store import record_reader

FORGOTTEN_AT_ONCE = 1024  # messages of a box that one step deletes: some 3 ms
FOUND_AT_ONCE = 4096  # messages of the spool that a start looks at in one step: some 2 ms
assert 2 * MAX_ALL_BOXES <= MAX_SPOOL  # boxes leave half of it to what the relay passes on

_BOX = RecordKind(
    "box",
    StateOwner.RELAY,
    holds="boxes that it keeps for others: how many messages gave way, and whether the owner is done with it",
    lifetime="until no lease leads to it, keepers are not asked for it, and nothing waits in it",
    bound=f"{MAX_BOXES:,}",
)
_KEY = 32  # bytes


class _KeptBox(msgspec.Struct, array_like=True):
    """A box as it lies in the store."""

    gave_way: Counter = 0
    is_closed: bool = False


_decode_box = record_reader(_KeptBox, "box")


class KeptBoxes:
    """The boxes of one relay."""

    def __init__(
        self, leases: LeaseStore, spool: Spool, sought: SoughtTrunks, lanes: BoxLanes, context: Context
    ) -> None:
        self._leases = leases
        self._sought = sought
        self.lanes = lanes
        """Which of them are given in blocks."""
        self._spool = spool
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._spawn = context.spawn
        self._kept: dict[bytes, _KeptBox] = {}
        self._shares = BoxShares()

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def __contains__(self, box: bytes) -> bool:
        """Tell whether a box is kept; the owner of one may be done with it."""
        return box in self._kept

    async def load(self) -> None:
        """Take up what was kept before a restart; leases and spool are read back already."""
        await self.lanes.load()
        await restore(self._store, _BOX, self._take_up)
        for count, (place, size) in enumerate(self._spool.held()):
            if is_box(hop := Hop(place[:HOP_SIZE])):
                self._shares.add(key_of(hop), place, size)
                self._found(key_of(hop))
            if count % FOUND_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        for hop in self._leases.book.next_hops():
            if is_box(hop):
                self._found(key_of(hop))
        for box in [box for box, kept in self._kept.items() if kept.is_closed]:
            await self._empty(box)
        await self.make_room()

    def _take_up(self, key: bytes, value: bytes) -> None:
        self._kept[sized(key, _KEY)] = _decode_box(value)

    def _found(self, box: bytes) -> None:
        """Keep a box whose record was damaged: what leads to it and waits in it is there still."""
        if box not in self._kept:
            self._kept[box] = _KeptBox()

    def size_of(self, box: bytes) -> int:
        """Return the bytes that a box takes of the spool."""
        return self._shares.size_of(box)

    def fullness(self) -> float:
        """Return the share (0 to 1) that is taken of the room for boxes, or of that for boxes that seek."""
        return max(len(self._kept) / MAX_BOXES, self._sought.fullness())

    def standing(self, box: bytes) -> tuple[tuple[bytes, ...], int, int | None]:
        """Return which leases lead to a box, how many messages gave way, and up to which day it seeks."""
        if (kept := self._kept.get(box)) is None:
            return (), 0, None
        leases = tuple(sorted(self._leases.book.held_for(box_hop(box))))
        return leases, kept.gave_way, self._sought.last_day(box)

    async def hold(self, box: bytes, lease: Lease | None, paid: bool) -> Lease | None:
        """Make a box, unless there is one, and have a lease lead to it, if any; return it as held. Durable.

        Raises a `Refusal` or `DecodeError`, as the lease book does; "quota", too, where there are too many
        boxes, and "withdrawn" where the owner has said that it is done with this one.
        """
        kept = self._kept.get(box)
        if kept is None and len(self._kept) >= MAX_BOXES * (1.0 if paid else NEEDED_FROM):
            raise Refusal("quota")
        if kept is not None and kept.is_closed:
            raise Refusal("withdrawn")
        held = None if lease is None else self._leases.book.hold(lease, self._env.now(), paid)
        if kept is None:
            self._kept[box] = _KeptBox()
        if held is None:
            await self._store.write(self._record(box))
        else:
            await self._leases.keep(held, self._record(box))
        return held

    async def seek(self, box: bytes, trunks: Iterable[SoughtTrunk], paid: bool) -> list[SoughtTrunk]:
        """Have keepers asked for what a box lacks of these trunks; return those that are new. Durable.

        Raises what `SoughtTrunks.take` does; `DecodeError` and `Refusal` ("withdrawn"), too, where there is
        no box yet, or no more.
        """
        if (kept := self._kept.get(box)) is None:
            raise DecodeError("keepers are to be asked for a box before there is one")
        if kept.is_closed:
            raise Refusal("withdrawn")
        taken = self._sought.take(box, trunks, paid)
        await self._store.write()
        return taken

    def keeps(self, box: bytes, day: int) -> bool:
        """Tell whether what waits in a box is kept beyond the day after its own."""
        first = self._sought.calendar.open_days(self._env.now()).start - LANE_DAYS
        return self._sought.keeps(box, day) or (box in self.lanes and day >= first)

    async def close(self, box: bytes) -> None:
        """Delete what waits in a box, and drop from now on what comes for it; durable on return.

        Its leases stay until their days lapse: those who send to it see no difference.
        """
        if (kept := self._kept.get(box)) is None:
            return
        kept.is_closed = True
        self._sought.forget(box)
        self.lanes.forget(box)
        self._store.write_soon(self._record(box))
        await self._empty(box)
        if not self._leases.book.held_for(box_hop(box)):
            self._forget(box)
        await self._store.write()

    def take(self, placed: Iterable[tuple[Hop, SpooledMessage]]) -> list[tuple[bytes, SpooledMessage]]:
        """Count messages that were spooled for boxes; return those for their owners.

        What comes for a box whose owner is done with it, or what a keeper has shown before, goes to disk all
        the same, and is deleted then.
        """
        for_owners: list[tuple[bytes, SpooledMessage]] = []
        dropped: list[SpooledMessage] = []
        for hop, item in placed:
            box = key_of(hop)
            kept, message = self._kept.get(box), item.message
            if kept is None or kept.is_closed or not self._sought.came(box, message.day, message.id):
                dropped.append(item)
                continue
            for_owners.append((box, item))
            self._shares.add(box, item.key, item.size + (REFERENCE if item.shared is not None else 0))
        if dropped:
            self._spawn(self._drop, dropped)
        return for_owners

    async def make_room(self) -> None:
        """Let messages give way, in short steps, for those that were taken."""
        while gone := self._shares.over():
            self._give_way(gone)
            await trio.lowlevel.checkpoint()

    def settled(self, box: bytes, items: Iterable[SpooledMessage]) -> None:
        """Forget what the owner of a box has taken over."""
        places = [item.key for item in items]
        for place in places:
            self._shares.remove(box, place)
        self._spool.forget(places)

    async def lapse(self) -> None:
        """Forget boxes to which nothing leads any more, once leases and the spool have lapsed.

        A lease has its price each day, and so has a day that is sought: nobody keeps a place for nothing.
        """
        self._sought.lapse()
        for box in list(self._kept):
            for place in self._shares.waiting(box):
                if place not in self._spool:
                    self._shares.remove(box, place)
            is_sought = self._sought.is_kept(box) or box in self.lanes
            is_held = is_sought or self._leases.book.held_for(box_hop(box))
            if not self._shares.size_of(box) and not is_held:
                self._forget(box)
            await trio.lowlevel.checkpoint()

    def _give_way(self, gone: list[tuple[bytes, bytes]]) -> None:
        self._counters.add("messages_gave_way", len(gone))
        changed: set[bytes] = set()
        for box, _ in gone:
            if box in self._kept:
                self._kept[box].gave_way += 1
                changed.add(box)
        # First the count: after a crash between the two what gave way is there, and has been told as lost.
        self._store.write_soon(*[self._record(box) for box in changed])
        self._spool.forget([place for _, place in gone])

    async def _drop(self, dropped: list[SpooledMessage]) -> None:
        await self._spool.durable()
        self._spool.done(dropped)

    async def _empty(self, box: bytes) -> None:
        while places := self._shares.waiting(box)[:FORGOTTEN_AT_ONCE]:
            for place in places:
                self._shares.remove(box, place)
            self._spool.forget(places)
            await trio.lowlevel.checkpoint()

    def _forget(self, box: bytes) -> None:
        if self._kept.pop(box, None) is not None:
            self._counters.add("boxes_forgotten")
            self._sought.forget(box)
            self._store.write_soon(Change(_BOX, box, None))

    def _record(self, box: bytes) -> Change:
        return Change(_BOX, box, encode(self._kept[box]))
