"""A channel: a link (`hushcast_protocol.base.link.links`) over a byte stream, carrying frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar, cast

import trio

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import PeerError, unraised
from hushcast_protocol.base.link.links import MAX_HANDSHAKE_READ, HandshakeDone, Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.translations import UNCHANGED
from hushcast_protocol.base.versions.wires import OtherWire
from hushcast_protocol.base.wire import Wire, encode
from hushcast_runtime.transports.at_once import (
    call_when_readable,
    close_at_once,
    read_at_once,
    write_at_once,
    writes_at_once,
)
from hushcast_runtime.transports.base import TooLate, Transport, TransportError
from hushcast_runtime.transports.turns import NO_TURN, Turn

FrameT = TypeVar("FrameT")
OtherT = TypeVar("OtherT")

CONNECT_TIMEOUT = 25.0  # seconds; first contact takes up to five, but to a service that restarted it may hang
HANDSHAKE_TIMEOUT = 10.0  # seconds from a stream to an open link: two round trips, of a second each over Tor
LINGER = 10.0  # seconds
_TOO_LATE = "the other end did not answer in time"
FRAMES_AT_ONCE = 256  # frames that one `receive` opens; a read holds 200 of the smallest messages
_READ = 256 * 1024  # bytes; at 64 KiB a busy link spent a third of its time on reads
_READ_AT_ONCE = 16 * 1024  # bytes; others' reads are in the same step, and what is longer is left to a task
_WRITE = 256 * 1024  # bytes sealed at once, and a frame more: a millisecond of a step


class Channel(Generic[FrameT]):
    """Frames over an open link. Sending is for any task; receiving for one.

    What one read brings is opened as it is asked for: until then it lies in the link, sealed. Whatever wire
    the link is in, frames are of the newest here.
    """

    __slots__ = (
        "_broken",
        "_closed",
        "_coming",
        "_decode",
        "_failure",
        "_link",
        "_sending",
        "_stream",
        "_turn",
        "_unsent",
        "_wire",
        "peer",
    )

    def __init__(
        self,
        stream: trio.abc.Stream,
        link: Link,
        decode: Callable[[bytes], FrameT],
        turn: Turn = NO_TURN,
    ) -> None:
        """`turn` is taken before what was read already is opened."""
        self._stream = stream
        self._turn = turn
        self._link = link
        self._decode = decode
        self._wire = UNCHANGED  # until the link's is known
        # Set when the current write has finished. A lock would take 300 bytes of each idle channel.
        self._sending: trio.Event | None = None
        self._unsent = b""  # what a stream did not take at once
        self._coming: Iterator[HandshakeDone | bytes] | None = None  # what the last read holds yet
        self._broken = False
        # A copy: what was raised holds the frames of its raises, and these the channel and what was refused.
        self._failure: PeerError | None = None
        self._closed: bool | Callable[[], None] = False  # or what hears of it
        self.peer: bytes | None = None
        """The other end's proven key; `None` where it stays anonymous."""

    async def handshake(self, turn: Turn | None = None) -> HandshakeDone:
        """Run the handshake; raise a `PeerError`, `OtherWire` among them, or `TransportError`.

        A `turn` is taken before each of its steps, if there is one: what is read has waited for others.
        """
        with _TRANSLATED, _within(HANDSHAKE_TIMEOUT):
            await self._flush()
            while True:
                data = await self._read()
                if turn is not None:
                    await turn()
                coming = self._link.receive(data)
                established = next(coming, None)
                await self._flush()
                if established is not None:
                    assert isinstance(established, HandshakeDone)
                    if established.other is not None:
                        raise OtherWire(established.other)
                    self._coming = coming if self._link.holds_more else None
                    self.peer = established.peer
                    self._wire = wires.table().translation(self._link.wire)
                    return established
        raise TooLate(_TOO_LATE)

    async def send(self, *frames: Wire) -> None:
        """Send frames in order, with nothing between them."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while self._sending is not None:
            await self._sending.wait()
        self._check_whole()
        sent = self._sending = trio.Event()
        try:
            # After a partial write, as when the sender is cancelled, nothing may follow on the stream.
            self._broken = True
            contents: list[bytes] = []
            size = 0
            with _TRANSLATED:
                if self._unsent:
                    unsent, self._unsent = self._unsent, b""
                    await self._stream.send_all(unsent)
                for frame in self._wire.all_down(frames):
                    if size >= _WRITE:
                        await self._stream.send_all(self._sealed(contents))
                        contents, size = [], 0
                    content = encode(frame)
                    contents.append(content)
                    size += len(content)
                await self._stream.send_all(self._sealed(contents))
            self._broken = False
        finally:
            self._sending = None
            sent.set()

    @property
    def is_free(self) -> bool:
        """Tell whether `send_at_once` may be called: nothing is being written, nor waits to be."""
        return self._sending is None and not self._unsent and writes_at_once(self._stream)

    @property
    def holds_unsent(self) -> bool:
        """Tell whether the stream did not take all of what was sent at once: `send` writes that first."""
        return bool(self._unsent)

    def send_at_once(self, *frames: Wire) -> None:
        """Send frames as `send` does, as far as the stream takes them without waiting (`holds_unsent`)."""
        self._check_whole()
        self._broken = True
        data = self._sealed(map(encode, self._wire.all_down(frames)))
        with _TRANSLATED:
            taken = write_at_once(self._stream, data)
        self._unsent = data[taken:]
        self._broken = False

    def _sealed(self, contents: Iterable[bytes]) -> bytes:
        self._link.send(*contents)
        return self._link.data_to_send()

    def _check_whole(self) -> None:
        if self._broken or not self._link.is_open:
            raise TransportError("the connection broke, or what came over it was refused")

    async def receive(self, most: int = FRAMES_AT_ONCE) -> list[FrameT]:
        """Return the next frames, at most so many; none when the other end closed the stream.

        Complete frames before a bad one are returned first, however the bytes were split; its `PeerError`
        comes next.
        """
        if self._failure is not None:
            raise unraised(self._failure)
        while True:
            if self._coming is None:
                with _TRANSLATED:
                    data = await self._stream.receive_some(_READ)
                if not data:
                    return []
                coming = self._link.receive(bytes(data))
            else:
                await self._turn()  # between two batches of one read
                coming = self._coming
            if batch := self._opened(coming, most):  # none where all of it is passed over
                return batch

    def receive_at_once(self, most: int) -> list[FrameT] | None:
        """Return what `receive` does, of one short read at most, or `None` where no frame is whole in it."""
        if self._failure is not None:
            raise unraised(self._failure)
        if self._coming is None:
            with _TRANSLATED:
                data = read_at_once(self._stream, _READ_AT_ONCE)
            if not data:
                return None if data is None else []
            self._coming = self._link.receive(data)
        return self._opened(self._coming, most) or None

    def rests(self, call: Callable[[], None]) -> bool:
        """Have `call` called once, when there is something to `receive`, or the end, or this was closed.

        Returns false where it will not be: there is something already, were it a part of a frame, or the
        stream calls nobody.
        """
        if self._coming is not None or self._failure is not None or self._link.holds_more:
            return False
        with _TRANSLATED:
            if data := read_at_once(self._stream, _READ):
                self._coming = self._link.receive(data)
            return data is None and call_when_readable(self._stream, call)

    def _opened(self, coming: Iterator[HandshakeDone | bytes], most: int) -> list[FrameT]:
        """Open the next frames of a read, after the handshake; keep the rest where there may be one."""
        batch: list[FrameT] = []
        self._coming = None
        opened = 0
        try:
            for frame in self._wire.all_up(islice(cast("Iterator[bytes]", coming), most)):
                opened += 1
                if frame is not None:
                    batch.append(self._decode(frame))
        except PeerError as error:
            self._failure = unraised(error)
            if not batch:
                raise
        else:
            if opened == most:  # of which some may have been passed over
                self._coming = coming
        return batch

    async def one(self, timeout: float) -> FrameT:
        """Return the next frame, the only one expected; wait `timeout` seconds at most."""
        with _within(timeout):
            return await self.first()
        raise TooLate(_TOO_LATE)

    async def first(self) -> FrameT:
        """Return the next frame, the only one expected; the caller sets the deadline.

        What stands behind it stays sealed.
        """
        if batch := await self.receive(1):
            return batch[0]
        raise TransportError("the other end closed the link before it answered")

    async def stirred(self) -> bool:
        """Wait until any bytes come that were not opened; return false where the other end closed instead.

        They stay sealed, for `receive`; for whoever receives, and safe to cancel.
        """
        if self._link.holds_more:
            return True
        with _TRANSLATED:
            data = await self._stream.receive_some(_READ)
        if data:
            self._coming = self._link.receive(bytes(data))
        return bool(data)

    async def finish(self) -> None:
        """Wait a moment for the other end to read what was sent and close first."""
        with _TRANSLATED, _within(LINGER):
            while await self._stream.receive_some(_READ):
                pass

    def speaking(self, decode: Callable[[bytes], OtherT], turn: Turn = NO_TURN) -> Channel[OtherT]:
        """Return the channel for other frames, now that the other end is known; use this one no more."""
        other = Channel(self._stream, self._link, decode, turn)
        other._coming, other._failure, other.peer = self._coming, self._failure, self.peer
        other._wire = self._wire
        return other

    async def aclose(self) -> None:
        """Close the stream at once."""
        self.close()
        await self._stream.aclose()  # a transport's streams wait for nobody: no need for `aclose_forcefully`

    def close(self) -> None:
        """Close a stream that `rests`; each other one is closed by `aclose`."""
        close_at_once(self._stream)
        heard, self._closed = self._closed, True
        if callable(heard):
            heard()

    def when_closed(self, call: Callable[[], None]) -> None:
        """Have `call` called once this is closed, or now if it is."""
        if self._closed:
            call()
        else:
            self._closed = call

    async def _read(self) -> bytes:
        data = await self._stream.receive_some(MAX_HANDSHAKE_READ)
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
) -> tuple[Channel[FrameT], HandshakeDone]:
    """Connect to `address` and run the initiator's handshake; raise a `PeerError` or `TransportError`."""
    stream: trio.abc.Stream | None = None
    with _TRANSLATED, _within(CONNECT_TIMEOUT):
        stream = await transport.connect(address, isolation, link.data_to_send())
    if stream is None:
        raise TooLate(_TOO_LATE)
    return await accept_channel(stream, link, decode)


async def accept_channel(
    stream: trio.abc.Stream, link: Link, decode: Callable[[bytes], FrameT], turn: Turn | None = None
) -> tuple[Channel[FrameT], HandshakeDone]:
    """Run the handshake over a stream, which is closed if that fails; a `turn` is taken for each step."""
    channel = Channel(stream, link, decode)
    try:
        return channel, await channel.handshake(turn)
    except BaseException:
        await channel.aclose()
        raise


def _within(seconds: float) -> trio.CancelScope:
    """Return what cancels a block when its time is over; trio's `fail_after` adds a generator to each."""
    return trio.CancelScope(deadline=trio.current_time() + seconds)


class _Translated:
    """Turns what trio raises when a stream ends into `TransportError`.

    It has no state, so one instance serves all channels.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if isinstance(error, trio.BrokenResourceError | trio.ClosedResourceError | OSError):
            raise TransportError("the connection broke") from None


_TRANSLATED = _Translated()
