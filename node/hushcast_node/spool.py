"""The spool: messages this relay took over and has not yet seen acknowledged by their next hop."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from hushcast_protocol.forwarding import Send
from hushcast_protocol.hops import HOP_SIZE, Hop
from hushcast_protocol.messages import Message
from hushcast_protocol.wire import decoder, encode
from hushcast_runtime.store import Change, Store

MAX_SPOOL = 256 * 1024 * 1024  # bytes of bodies; a thousand of the largest, 250,000 of the smallest
MAX_SHARE = MAX_SPOOL // 8  # bytes for one next hop: a mailbox that stays away must not stop all the others
_SCAN = 15  # records read at once: so many of the largest fit into a queue (`peers.MAX_QUEUE`)

_KIND = "spool"
_decode: Callable[[bytes], Message] = decoder(Message, "message", 512 * 1024)


class Spooled(msgspec.Struct, frozen=True, gc=False):
    """A message waiting for its next hop to acknowledge it; `key` is its place in the store."""

    key: bytes
    message: Message


class Move(msgspec.Struct, frozen=True, gc=False):
    """A spooled message that is to wait for another next hop, in another form."""

    item: Spooled
    hop: Hop
    message: Message


class Spool:
    """Messages by next hop, in order of arrival."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[bytes, tuple[int, int]] = {}  # by key: size in bytes, day
        self._size = 0
        self._shares: dict[Hop, int] = {}  # bytes by next hop
        self._next = 0

    @property
    def size(self) -> int:
        """Bytes of the bodies held."""
        return self._size

    def is_full(self, more: int) -> bool:
        """Tell whether `more` bytes would pass the cap."""
        return self._size + more > MAX_SPOOL

    def has_share(self, hop: Hop, more: int) -> bool:
        """Tell whether `more` bytes for one next hop leave the others their part."""
        return self._shares.get(hop, 0) + more <= MAX_SHARE

    async def load(self) -> list[Hop]:
        """Count what was held before a restart; return the next hops that something waits for."""
        hops: dict[Hop, None] = {}
        after: bytes | None = None
        while batch := await self._store.scan(_KIND, after=after, limit=_SCAN):
            for key, value in batch:
                hop, message = Hop(key[:HOP_SIZE]), _decode(value)
                hops[hop] = None
                self._hold(hop, key, (len(message.body), message.day))
                self._next = max(self._next, int.from_bytes(key[HOP_SIZE:], "big") + 1)
            after = batch[-1][0]
        return list(hops)

    def put(self, sends: Iterable[Send], *settled: Change) -> list[tuple[Hop, Spooled]]:
        """Hold messages, together with what this settles; return them by next hop.

        They may be sent at once, and are taken over, which is what an acknowledgement says, once `durable`.
        """
        placed, changes = [], list(settled)
        last: Message | None = None
        packed, held = b"", (0, 0)
        for send in sends:
            hop, message = send.hop, send.message
            if message is not last:  # a message for several hops is encoded once
                last, packed, held = message, encode(message), (len(message.body), message.day)
            key = hop + self._next.to_bytes(8, "big")
            self._next += 1
            self._hold(hop, key, held)
            placed.append((hop, Spooled(key, message)))
            changes.append(Change(_KIND, key, packed))
        self._store.write_soon(*changes)
        return placed

    async def durable(self) -> None:
        """Return once all that was put is on disk."""
        await self._store.write()

    async def move(self, moves: Iterable[Move]) -> list[tuple[Hop, Spooled]]:
        """Let messages wait for other next hops, each in one commit; return them as `put` does."""
        moves = [move for move in moves if self.holds(move.item)]
        sends = [Send(move.hop, move.message) for move in moves]
        for move in moves:
            self._release(move.item.key)
        placed = self.put(sends, *(Change(_KIND, move.item.key, None) for move in moves))
        await self.durable()
        return placed

    def done(self, spooled: Iterable[Spooled]) -> None:
        """Forget messages that were acknowledged, or given up."""
        changes = []
        for item in spooled:
            self._release(item.key)
            changes.append(Change(_KIND, item.key, None))
        self._store.write_soon(*changes)

    def holds(self, item: Spooled) -> bool:
        """Tell whether a message still waits: it was neither acknowledged nor has it expired."""
        return item.key in self._held

    def expire(self, is_open: Callable[[int], bool]) -> int:
        """Forget messages of days that are over; return how many."""
        expired = [key for key, (_, day) in self._held.items() if not is_open(day)]
        for key in expired:
            self._release(key)
        self._store.write_soon(*(Change(_KIND, key, None) for key in expired))
        return len(expired)

    async def waiting(self, hop: Hop) -> list[Spooled]:
        """Return the first messages for `hop`, at most 15."""
        await self.durable()  # what was acknowledged is gone only once that is committed
        records = await self._store.scan(_KIND, hop, limit=_SCAN)
        return [Spooled(key, _decode(value)) for key, value in records if key in self._held]

    def _hold(self, hop: Hop, key: bytes, held: tuple[int, int]) -> None:
        self._held[key] = held
        size = held[0]
        self._size += size
        self._shares[hop] = self._shares.get(hop, 0) + size

    def _release(self, key: bytes) -> None:
        size, hop = self._held.pop(key, (0, 0))[0], Hop(key[:HOP_SIZE])
        self._size -= size
        if (left := self._shares.get(hop, 0) - size) > 0:
            self._shares[hop] = left
        else:
            self._shares.pop(hop, None)
