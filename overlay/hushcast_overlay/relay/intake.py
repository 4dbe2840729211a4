"""The intake: what strangers dropped here and got a receipt for, on disk until it is routed.

Each takes its room in the spool from the beginning, so that what was accepted has a place to go.
"""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import Change, Store

_KIND = RecordKind(
    "intake",
    StateOwner.RELAY,
    holds="messages that were accepted and not yet routed",
    lifetime="moments; without a next hop 300 s; without room for it until its day has lapsed",
    bound="within the bound of `spool`",
)
_SCAN = 15  # records read at once
_COUNT = 8  # bytes at the end of a key
_decode: Callable[[bytes], Message] = decoder(Message, "message", 512 * 1024)


class Intake:
    """The messages that one relay accepted and has not routed yet."""

    def __init__(self, store: Store, spool: Spool) -> None:
        self._store = store
        self._spool = spool
        self._reserved: dict[bytes, int] = {}  # bytes, by key
        self._count = 0

    async def load(self) -> list[bytes]:
        """Return the keys of what a restart interrupted."""
        await restore(self._store, _KIND, self._take_up, at_once=_SCAN)
        return list(self._reserved)

    def _take_up(self, key: bytes, value: bytes) -> None:
        message = _decode(value)
        check_message(message)
        if key[:-_COUNT] != message.id:
            raise DecodeError("a message is kept under another's id")
        self._keep(key, len(message.body))
        self._count = max(self._count, int.from_bytes(key[-_COUNT:], "big"))  # no key is given twice

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

    def settle(self, key: bytes) -> Change:
        """Give back a message's room; return the change that forgets it, for the commit that puts it on."""
        size = self._reserved.pop(key)
        self._spool.reserve(-size)
        return Change(_KIND, key, None, size)

    def _keep(self, key: bytes, size: int) -> None:
        self._reserved[key] = size
        self._spool.reserve(size)
