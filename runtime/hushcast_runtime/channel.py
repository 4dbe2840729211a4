"""A channel: a link (`hushcast_protocol.links`) over a byte stream, carrying frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

from hushcast_protocol.addresses import Address
from hushcast_protocol.errors import PeerError
from hushcast_protocol.links import Established, Link
from hushcast_protocol.wire import Wire, encode
from hushcast_runtime.transports.base import Transport, TransportError

FrameT = TypeVar("FrameT")

CONNECT_TIMEOUT = 25.0  # seconds; first contact takes up to five, but to a service that restarted it may hang
HANDSHAKE_TIMEOUT = 30.0  # seconds from connected stream to open link; a round trip over Tor takes about one
LINGER = 10.0  # seconds
_READ = 256 * 1024  # bytes; at 64 KiB a busy link spent a third of its time on reads


class Channel(Generic[FrameT]):
    """Frames over an open link. Sending is for any task; receiving for one."""

    def __init__(self, stream: trio.abc.Stream, link: Link, decode: Callable[[bytes], FrameT]) -> None:
        self._stream = stream
        self._link = link
        self._decode = decode
        self._sending = trio.Lock()
        self._early: list[bytes] = []
        self._broken = False
        self._failure: PeerError | None = None
        self.peer: bytes | None = None
        """The other end's proven key; `None` where it stays anonymous."""

    async def handshake(self) -> Established:
        """Run the handshake; raise a `PeerError` or `TransportError`."""
        with _translated(), trio.fail_after(HANDSHAKE_TIMEOUT):
            await self._flush()
            while True:
                for event in self._link.receive(await self._read()):
                    if isinstance(event, Established):
                        established = event
                        self.peer = event.peer
                    else:
                        self._early.append(event)
                await self._flush()
                if self._link.is_open:
                    return established

    async def send(self, *frames: Wire) -> None:
        """Send frames in order, in one write."""
        with _translated():
            async with self._sending:
                if self._broken or not self._link.is_open:
                    raise TransportError("the connection broke, or what came over it was refused")
                for frame in frames:
                    self._link.send(encode(frame))
                # Bytes half sent, as when the sender is cancelled, leave nothing that could follow them.
                self._broken = True
                await self._stream.send_all(self._link.data_to_send())
                self._broken = False

    async def receive(self) -> list[FrameT]:
        """Return the frames of the next read that ends one; none when the other end closed the stream.

        What came whole before a bad frame counts, however the bytes were cut: its `PeerError` comes next.
        """
        if self._failure is not None:
            raise self._failure
        if self._early:
            return self._decoded(iter([self._early.pop(0)]))
        while True:
            with _translated():
                data = await self._stream.receive_some(_READ)
            if not data:
                return []
            if batch := self._decoded(self._link.receive(bytes(data))):
                return batch

    def _decoded(self, events: Iterator[Established | bytes]) -> list[FrameT]:
        batch: list[FrameT] = []
        try:
            for event in events:
                assert isinstance(event, bytes)
                batch.append(self._decode(event))
        except PeerError as error:
            if not batch:
                raise
            self._failure = error
        return batch

    async def one(self, timeout: float) -> FrameT:
        """Return the next frame, the only one expected; wait `timeout` seconds at most."""
        with _translated(), trio.fail_after(timeout):
            if batch := await self.receive():
                return batch[0]
        raise TransportError("the other end closed the link before it answered")

    async def finish(self) -> None:
        """Let the other end take what was sent and close first; a moment is enough for an honest one."""
        with _translated(), trio.move_on_after(LINGER):
            while await self._stream.receive_some(_READ):
                pass

    async def aclose(self) -> None:
        """Close the stream at once."""
        await trio.aclose_forcefully(self._stream)

    async def _read(self) -> bytes:
        data = await self._stream.receive_some(_READ)
        if not data:
            raise TransportError("the other end closed the stream during the handshake")
        return bytes(data)

    async def _flush(self) -> None:
        if data := self._link.data_to_send():
            await self._stream.send_all(data)


async def open_channel(
    transport: Transport,
    address: Address,
    isolation: str,
    link: Link,
    decode: Callable[[bytes], FrameT],
) -> tuple[Channel[FrameT], Established]:
    """Connect to `address` and run the initiator's handshake; raise a `PeerError` or `TransportError`."""
    with _translated(), trio.fail_after(CONNECT_TIMEOUT):
        stream = await transport.connect(address, isolation)
    return await accept_channel(stream, link, decode)


async def accept_channel(
    stream: trio.abc.Stream, link: Link, decode: Callable[[bytes], FrameT]
) -> tuple[Channel[FrameT], Established]:
    """Run the handshake over a stream, which is closed if that fails."""
    channel = Channel(stream, link, decode)
    try:
        return channel, await channel.handshake()
    except BaseException:
        await channel.aclose()
        raise


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what trio raises when a stream ends or time runs out into `TransportError`."""
    try:
        yield
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        raise TransportError("the connection broke") from None
    except trio.TooSlowError:
        raise TransportError("the other end did not answer in time") from None
