"""The `memory` transport: daemons of one process, with delays that a mock clock can skip."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import copy_context

import trio

from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.transports.at_once import ReadyStream
from hushcast_runtime.transports.base import StreamHandler, TransportError
from hushcast_runtime.transports.next_turn import in_next_turn
from hushcast_runtime.transports.streams import say_ahead

CallAt = Callable[[float, Callable[[], None]], None]
"""Calls a function when trio's clock shows a moment."""

MAX_IN_FLIGHT = 1024 * 1024  # bytes in one direction of a stream before the sender waits, as in a socket


class MemoryNetwork:
    """All listeners of one simulated network."""

    def __init__(self, delay: Callable[[], float] = lambda: 0.0, call_at: CallAt | None = None) -> None:
        """`delay()` gives a new stream its seconds one way; a clock that has `call_at` spares tasks sleep."""
        self.delay = delay
        self.call_at = call_at
        self.listeners: dict[Address, MemoryListener] = {}

    def transport(self) -> MemoryTransport:
        """Return the transport of one daemon."""
        return MemoryTransport(self)

    async def pause(self, seconds: float) -> None:
        """Wait, as a task that sleeps would."""
        if self.call_at is None:
            await trio.sleep(seconds)
        else:
            over = trio.Event()
            self.call_at(trio.current_time() + seconds, over.set)
            await over.wait()


class MemoryTransport:
    """One daemon's way into a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._listeners: list[MemoryListener] = []

    async def listen(self, seed: Seed, previous: Address | None = None) -> MemoryListener:
        """Open the listener whose address is the key of `seed`."""
        await trio.lowlevel.checkpoint()
        return self.open(MemoryListener(self._network, memory_address(seed.public())))

    def open(self, listener: MemoryListener) -> MemoryListener:
        """Open a listener of this daemon's."""
        if listener.address in self._network.listeners:
            raise TransportError("this address is already listened on")
        self._network.listeners[listener.address] = listener
        self._listeners.append(listener)
        return listener

    def vanish(self) -> None:
        """Withdraw all addresses at once, as when the daemon's process dies."""
        for listener in self._listeners:
            listener.withdraw()
        self._listeners.clear()

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect to a listener of the same network."""
        delay = self._network.delay()
        await self._network.pause(2 * delay)
        listener = self._network.listeners.get(address)
        if listener is None:
            raise TransportError("no daemon answers at this address")
        forth, back = (Pipe(delay, self._network.call_at) for _ in range(2))
        listener.accept(MemoryStream(forth, back))
        return await say_ahead(MemoryStream(back, forth), ahead)


class MemoryListener:
    """One address in a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, address: Address) -> None:
        self._network = network
        self.address = address
        self._accepted: list[MemoryStream] = []  # before it serves
        self._begin: Callable[[MemoryStream], None] = self._accepted.append

    def accept(self, stream: MemoryStream) -> None:
        """Take the far end of a new stream."""
        self._begin(stream)

    async def serve(self, handler: StreamHandler) -> None:
        """Run `handler` for every stream, each in a task of its own."""
        async with trio.open_nursery() as nursery:
            context = copy_context()  # of this daemon: who opens a stream is another one

            def begin(stream: MemoryStream) -> None:
                context.run(nursery.start_soon, _handle, handler, stream)

            self._begin = begin
            while self._accepted:
                begin(self._accepted.pop(0))
            try:
                await trio.sleep_forever()
            finally:
                self._begin = self._accepted.append

    async def published(self) -> None:
        """Return at once: the address is known as soon as it exists."""
        await trio.lowlevel.checkpoint()

    def withdraw(self) -> None:
        """Withdraw the address, if it is still this listener's."""
        if self._network.listeners.get(self.address) is self:
            del self._network.listeners[self.address]
        while self._accepted:
            self._accepted.pop().close()

    async def aclose(self) -> None:
        """Withdraw the address."""
        self.withdraw()
        await trio.lowlevel.checkpoint()


async def _handle(handler: StreamHandler, stream: MemoryStream) -> None:
    is_kept: bool | None = False
    try:
        is_kept = await handler(stream)
    except Exception:  # noqa: S110 - the contract of `Listener.serve`: it costs this stream only
        pass
    finally:
        if not is_kept:
            stream.close()


class Pipe:
    """One direction of a stream: chunks that can be read a delay after they were written.

    What only a waiting end needs is made when it waits: a simulation holds millions of idle pipes.
    """

    __slots__ = ("_call_at", "_chunks", "_closed", "_delay", "_reader", "_size", "_writable")

    def __init__(self, delay: float, call_at: CallAt | None) -> None:
        self._delay = delay
        self._call_at = call_at
        self._chunks: list[tuple[float, bytes]] | tuple[()] = ()
        self._size = 0
        self._closed = False
        self._reader: trio.lowlevel.Task | Callable[[], None] | None = None
        self._writable: trio.Event | None = None

    async def write(self, data: bytes) -> None:
        """Write all of `data`, once there is room; raise `trio.BrokenResourceError` if the stream ended."""
        while self._size > MAX_IN_FLIGHT and not self._closed:
            if self._writable is None:
                self._writable = trio.Event()
            await self._writable.wait()
        # Nobody's turn is taken: what was written is read in another one, and there is room for so much only.
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise trio.BrokenResourceError("the other end closed the stream")
        if data:
            self._size += len(data)
            self.send(data)

    def write_at_once(self, data: bytes) -> int:
        """Write all of `data` if there is room; return how many bytes were written."""
        if self._closed:
            raise trio.BrokenResourceError("the other end closed the stream")
        if self._size > MAX_IN_FLIGHT or not data:
            return 0
        self._size += len(data)
        self.send(data)
        return len(data)

    def send(self, data: bytes) -> None:
        """Send bytes on their way; a network that makes more of a way than a delay overrides it."""
        self.put(trio.current_time() + self._delay, data)

    def put(self, arrival: float, data: bytes) -> None:
        """Let bytes arrive then, behind those before them."""
        self._chunks = self._chunks or []
        self._chunks.append((arrival, data))
        if self._call_at is None:
            self._wake_reader()
        else:
            self._call_at(arrival, self._wake_reader)

    @property
    def is_readable(self) -> bool:
        """Tell whether bytes can be read now, or the end."""
        return self._arrival() <= trio.current_time()

    def call_when_readable(self, call: Callable[[], None]) -> bool:
        """Have `call` called, if nothing can be read now; see `ReadyStream.call_when_readable`."""
        if self.is_readable or (self._call_at is None and self._delay):  # a sleep would have to be waited for
            return False
        self._check_unread()
        self._reader = call
        return True

    async def readable(self) -> None:
        """Return when bytes can be read, or the end."""
        if (arrival := self._arrival()) <= trio.current_time():
            await trio.lowlevel.checkpoint()  # to wait is one
            return
        while arrival > trio.current_time():
            if arrival < math.inf and self._call_at is None:
                await trio.sleep_until(arrival)
            else:
                await trio.lowlevel.wait_task_rescheduled(self._wake_at_more())
            arrival = self._arrival()

    def _arrival(self) -> float:
        """Return when the next bytes can be read, or the end; infinite while nothing is on its way."""
        if self._chunks:
            return self._chunks[0][0]
        return -math.inf if self._closed else math.inf

    def take(self, most: int) -> bytes:
        """Return what has arrived, at most so many bytes, once there is something `readable`."""
        if len(self._chunks) == 1 and len(self._chunks[0][1]) <= most:  # as a rule
            ((_, chunk),) = self._chunks
            self._chunks = ()
            self._size -= len(chunk)
            self._wake_writers()
            return chunk
        now, taken, size = trio.current_time(), [], 0
        chunks = self._chunks or []
        for arrival, chunk in chunks:
            if arrival > now or size >= most:
                break
            taken.append(chunk)
            size += len(chunk)
        del chunks[: len(taken)]
        if size > most:
            last = taken.pop()
            cut = len(last) - (size - most)
            taken.append(last[:cut])
            chunks.insert(0, (now, last[cut:]))
            size = most
        self._chunks = chunks or ()
        self._size -= size
        self._wake_writers()
        return b"".join(taken)

    def _wake_at_more(self) -> Callable[[object], trio.lowlevel.Abort]:
        """Have this task woken when something comes or the stream is closed; return how to be forgotten."""
        self._check_unread()
        self._reader = trio.lowlevel.current_task()
        return self._forget_reader

    def _check_unread(self) -> None:
        if self._reader is not None:
            raise trio.BusyResourceError("another task is reading from this stream")

    def close(self) -> None:
        """Let the end come when all that was put has been taken; who writes hears of it at once."""
        self._closed = True
        self._wake_reader()
        self._wake_writers()

    def _forget_reader(self, _: object) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake_reader(self) -> None:
        reader, self._reader = self._reader, None
        if isinstance(reader, trio.lowlevel.Task):
            trio.lowlevel.reschedule(reader)
        elif reader is not None:
            in_next_turn(reader)

    def _wake_writers(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None:
            writable.set()


class MemoryStream(ReadyStream):
    """One end of a stream between two daemons of one process."""

    __slots__ = ("_closed", "_incoming", "_outgoing")

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of `data`."""
        self._check_open()
        await self._outgoing.write(bytes(data))

    def write_at_once(self, data: bytes) -> int:
        """Write all of `data` if there is room; return how many bytes were written."""
        self._check_open()
        return self._outgoing.write_at_once(data)

    def read_at_once(self, most: int) -> bytes | None:
        """Return what can be read now, `None` if nothing can."""
        self._check_open()
        return self._incoming.take(most) if self._incoming.is_readable else None

    def call_when_readable(self, call: Callable[[], None]) -> bool:
        """Have `call` called once something can be read; tell whether it will be."""
        return not self._closed and self._incoming.call_when_readable(call)

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once."""
        self._check_open()
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return some bytes, or none at the end of the stream."""
        self._check_open()
        await self._incoming.readable()
        self._check_open()
        return self._incoming.take(max_bytes or 65536)

    def close(self) -> None:
        """Close both directions."""
        self._closed = True
        self._incoming.close()
        self._outgoing.close()

    async def aclose(self) -> None:
        """Close both directions."""
        self.close()
        # Channels close in a cancelled scope: to be cancelled here, too, took a tenth of a simulation's time.
        await trio.lowlevel.cancel_shielded_checkpoint()

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this end of the stream was closed")
