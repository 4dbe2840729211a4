"""The intake: what strangers dropped here and got a receipt for, on disk until it is routed, and for a while.

Each takes its room in the spool from the beginning, so that what was accepted has a place to go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.overlay.late_routes import MAX_WAITING_SIZE
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import Store

_KIND = RecordKind(
    "intake",
    StateOwner.RELAY,
    holds="messages that were accepted, and may yet have routes that they were not sent by",
    lifetime="300 s, anew after a restart; without room for it until its day has lapsed",
    bound=f"within the bound of `spool`; {MAX_WAITING_SIZE // 2**20} MiB beside it of what was routed",
)
_ROUTED = RecordKind(
    "routed",
    StateOwner.RELAY,
    holds="which of `intake` were routed, and wait for leases that are on their way alone",
    lifetime="as long as these",
)
_SCAN = 15  # records read at once
_COUNT = 8  # bytes at the end of a key
T = TypeVar("T")
_decode: Callable[[bytes], Message] = decoder(Message, "message", 512 * 1024)


class Intake:
    """The messages that one relay accepted and still keeps."""

    def __init__(self, store: Store, spool: Spool) -> None:
        self._store = store
        self._spool = spool
        self._sizes: dict[bytes, int] = {}  # bytes, by key
        self._routed: set[bytes] = set()  # of these, those for which no room is reserved any more
        self._count = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._sizes

    async def load(self, look: Callable[[Message], T]) -> tuple[list[bytes], list[tuple[bytes, T]]]:
        """Return the keys of what a restart interrupted, and of what had been routed, as they came.

        With the latter it returns what `look` says of each message: only here all are read at once.
        """
        looked: dict[bytes, T] = {}

        def take_up(key: bytes, value: bytes) -> None:
            message = self._take_up(key, value)
            if key in self._routed:
                looked[key] = look(message)

        await restore(self._store, _ROUTED, lambda key, _: self._routed.add(key))
        await restore(self._store, _KIND, take_up, at_once=_SCAN)
        for key in self._routed - self._sizes.keys():  # the message was damaged
            self._routed.remove(key)
            self._store.write_soon(Change(_ROUTED, key, None))
        came = sorted(self._sizes, key=_number)
        interrupted = [key for key in came if key not in looked]
        return interrupted, [(key, looked[key]) for key in came if key in looked]

    def _take_up(self, key: bytes, value: bytes) -> Message:
        message = _decode(value)
        check_message(message)
        if key[:-_COUNT] != message.id:
            raise DecodeError("a message is kept under another's id")
        self._keep(key, len(message.body))
        self._count = max(self._count, _number(key))  # no key is given twice
        return message

    async def take(self, message: Message) -> bytes:
        """Put a message on disk; return its key once it is there."""
        self._count += 1
        key = message.id + self._count.to_bytes(_COUNT, "big")
        self._keep(key, len(message.body))
        await self._store.write(Change(_KIND, key, encode(message)))
        return key

    async def read(self, key: bytes) -> Message:
        """Return a message that is not settled."""
        ((_, value),) = await self._store.scan(_KIND, key, limit=1)
        return _decode(value)

    def routed(self, key: bytes) -> list[Change]:
        """Give back a message's room, and keep it; return the changes that say so, for the spool's commit."""
        if key in self._routed:
            return []
        self._spool.reserve(-self._sizes[key])
        self._routed.add(key)
        return [Change(_ROUTED, key, b"")]

    def unrouted(self, key: bytes) -> list[Change]:
        """Take room for a message that is to be routed once more; return the changes that say so."""
        if key not in self._routed:
            return []
        self._spool.reserve(self._sizes[key])
        self._routed.remove(key)
        return [Change(_ROUTED, key, None)]

    def settle(self, key: bytes) -> list[Change]:
        """Give back a message's room, if it has some; return the changes that forget it."""
        size = self._sizes.pop(key)
        gone = Change(_KIND, key, None, size)
        if key not in self._routed:
            self._spool.reserve(-size)
            return [gone]
        self._routed.remove(key)
        return [gone, Change(_ROUTED, key, None)]

    def _keep(self, key: bytes, size: int) -> None:
        self._sizes[key] = size
        if key not in self._routed:
            self._spool.reserve(size)


def _number(key: bytes) -> int:
    return int.from_bytes(key[-_COUNT:], "big")
