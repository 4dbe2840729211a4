"""One client's byte stream: what goes out, in few and bounded writes, and the end that lets it be read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_runtime.transports.at_once import write_at_once, writes_at_once
from hushcast_runtime.transports.base import TransportError

MAX_WAITING = 1024 * 1024  # bytes queued to one client; then its QoS 0 messages are dropped, and its own wait
CROWDED = MAX_WAITING // 2  # bytes queued to one client from which on publishers are read more slowly
RELIEF = 0.05  # seconds that a publisher then waits after each read, if the client takes anything at all
WRITE_WITHIN = 30.0  # seconds in which a client must take `_WRITE` bytes, or it is gone
LINGER = 5.0  # seconds that a client may take to read the last packet and to close
READ = 128 * 1024  # bytes of one read; at 64 and at 256 KiB a busy client got a tenth less through
_WRITE = 128 * 1024  # bytes of one write

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class ClientStream:
    """The outlet of a link (`Outlet`), and the reading side as bytes."""

    def __init__(self, stream: trio.abc.Stream, crowded: set[ClientStream], since: float) -> None:
        """It came at `since`, Unix time.

        `crowded` are all whose clients take what they are sent more slowly than it comes.
        """
        self._stream = stream
        # A deadline and a lock for each write cost more than the write.
        self._writes_at_once = writes_at_once(stream)
        self._crowded = crowded
        self._stalled = False
        self._waiting: list[bytes] = []
        self._size = 0  # bytes waiting or being written
        self._is_closing = False
        self._wake: trio.Event | None = None
        self._progress: trio.Event | None = None
        self._was_full = False
        self.link: MqttConnection | None = None
        """The broker's, once the client's CONNECT was accepted."""
        self.reading = trio.CancelScope()
        self.since = since
        self.packets_in = self.bytes_in = 0
        """What the client sent: what could be read of it, its CONNECT included."""
        self.packets_out = self.bytes_out = 0
        """What it was sent."""

    def send(self, data: bytes) -> None:
        """Queue bytes."""
        if not self._is_closing:
            self._waiting.append(data)
            self._size += len(data)
            if self._size > CROWDED and not self._stalled:
                self._crowded.add(self)
            if self._wake is not None:
                self._wake.set()

    def has_room(self) -> bool:
        """Tell whether messages may be queued."""
        if self._size < MAX_WAITING:
            return True
        self._was_full = True
        return False

    @property
    def is_full(self) -> bool:
        """Whether so much is queued that the client should take some of it before it asks for more."""
        return self._size >= MAX_WAITING

    def close(self, last: bytes) -> None:
        """Stop reading, and end once what is queued has been written."""
        if last:
            self.send(last)
        self._is_closing = True
        self.reading.cancel()
        if self._wake is not None:
            self._wake.set()

    @property
    def is_closing(self) -> bool:
        """Whether nothing more is read."""
        return self._is_closing

    async def receive(self, at_most: int = READ) -> bytes:
        """Return the next bytes, none at the end or when the stream broke."""
        try:
            data = bytes(await self._stream.receive_some(at_most))
        except BROKEN:
            return b""
        self.bytes_in += len(data)
        return data

    async def progress(self) -> None:
        """Wait until something was written."""
        if self._progress is None:
            self._progress = trio.Event()
        await self._progress.wait()

    async def finish(self) -> None:
        """Stop, whatever is queued."""
        self._is_closing = True
        self._crowded.discard(self)
        await trio.aclose_forcefully(self._stream)

    async def write(self, drained: Callable[[], None]) -> None:
        """Write what is queued until the connection is closed; raises `TransportError`.

        `drained` is called when there is room again after `has_room` said that there is none.
        """
        try:
            while True:
                data = b"".join(self._waiting)
                self.packets_out += len(self._waiting)
                self.bytes_out += len(data)
                self._waiting.clear()
                for start in range(0, len(data), _WRITE):
                    part = data if len(data) <= _WRITE else data[start : start + _WRITE]
                    await self._hand_over(part)
                    self._size -= len(part)
                    self._stalled = False
                    if self._size <= CROWDED:
                        self._crowded.discard(self)
                    if self._progress is not None:
                        self._progress.set()
                        self._progress = None
                    if self._was_full and self._size < MAX_WAITING // 2:
                        self._was_full = False
                        drained()
                if self._waiting:
                    continue
                if self._is_closing:
                    return
                self._wake = trio.Event()
                await self._wake.wait()
                self._wake = None
        except BROKEN:
            raise TransportError("the connection broke") from None
        except trio.TooSlowError:
            raise TransportError("the client does not read") from None

    async def _hand_over(self, part: bytes) -> None:
        """Write bytes: at once what the stream takes, as most often all of them, and the rest in time."""
        taken = write_at_once(self._stream, part) if self._writes_at_once else 0
        if taken < len(part):
            with trio.fail_after(WRITE_WITHIN):
                await self._stream.send_all(part[taken:] if taken else part)
        elif self._size > len(part):  # there is more: others have their turn before it
            await trio.lowlevel.checkpoint()

    async def linger(self) -> None:
        """Let the client read the last packet.

        Bytes of the client's that were never read would turn the end into a reset, and that drops the packet.
        """
        if not isinstance(self._stream, trio.abc.HalfCloseableStream):
            return
        with suppress(*BROKEN), trio.move_on_after(LINGER):
            await self._stream.send_eof()
            while await self._stream.receive_some(READ):
                pass


async def relieve(crowded: set[ClientStream]) -> None:
    """Wait a moment until crowded clients have taken some; who takes nothing is not waited for again."""
    waited_for = list(crowded)
    for connection in waited_for:
        connection._stalled = True
    with trio.move_on_after(RELIEF):
        for connection in waited_for:
            while connection in crowded:
                await connection.progress()
    for connection in waited_for:
        if connection._stalled:
            crowded.discard(connection)
