"""Transports of single daemons, which can be held up, and whose listeners go when their daemon does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.transports.at_once import (
    ReadyStream,
    call_when_readable,
    close_at_once,
    read_at_once,
    write_at_once,
)
from hushcast_runtime.transports.base import Listener, StreamHandler, Transport
from hushcast_runtime.transports.streams import say_ahead


class Gate:
    """While shut, nothing is read from the streams of one daemon."""

    def __init__(self) -> None:
        self._open = trio.Event()
        self._open.set()
        self.bytes = 0
        """What its daemon has sent and read so far."""

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def shut(self) -> None:
        self._open = trio.Event()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        if not self._open.is_set():  # to wait takes a turn of the scheduler else
            await self._open.wait()


class GatedStream(ReadyStream):
    """A stream that is read only while its daemon's gate is open."""

    def __init__(self, inner: trio.abc.Stream, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._gate.bytes += len(data)
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        await self._gate.passed()
        received = await self._inner.receive_some(max_bytes)
        self._gate.bytes += len(received)
        return received

    def write_at_once(self, data: bytes) -> int:
        taken = write_at_once(self._inner, data)
        self._gate.bytes += taken
        return taken

    def read_at_once(self, most: int) -> bytes | None:
        read = read_at_once(self._inner, most) if self._gate.is_open else None
        self._gate.bytes += len(read or b"")
        return read

    def call_when_readable(self, call: Callable[[], None]) -> bool:
        return self._gate.is_open and call_when_readable(self._inner, call)

    def close(self) -> None:
        close_at_once(self._inner)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _GatedListener:
    def __init__(self, inner: Listener, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    @property
    def address(self) -> Address:
        return self._inner.address

    async def serve(self, handler: StreamHandler) -> None:
        await self._inner.serve(lambda stream: handler(GatedStream(stream, self._gate)))

    async def published(self) -> None:
        await self._inner.published()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Wires(Protocol):
    """What joins the daemons of a network."""

    def transport(self) -> Transport:
        """Return the transport of one daemon."""


class ProcessTransport:
    """The transport of one life of a daemon: what it listens on goes when the process does."""

    def __init__(self, wires: Wires, gate: Gate) -> None:
        self._inner = wires.transport()
        self._gate = gate
        self.listeners: list[_GatedListener] = []

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        listener = _GatedListener(await self._inner.listen(seed, previous), self._gate)
        self.listeners.append(listener)
        return listener

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        stream = GatedStream(await self._inner.connect(address, isolation), self._gate)
        return await say_ahead(stream, ahead)

    async def die(self) -> None:
        with trio.CancelScope(shield=True):
            for listener in self.listeners:
                await listener.aclose()
