"""The `tcp` transport: loopback only and refused otherwise, for tests and machines without Tor.

It hides nothing: every process of the machine can connect, and whoever listens sees who connects.
"""

from __future__ import annotations

import re

import trio

from hushcast_protocol.base.addresses import Address, parse_address, split
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_runtime.transports.base import Listener, StreamHandler, TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import (
    LOOPBACK,
    listen_on_loopback,
    port_of,
    say_ahead,
    serve_streams,
)

_LOOPBACK = re.compile(r"127\.")


def _loopback(address: Address) -> tuple[str, int]:
    """Return host and port; raise `DecodeError` for an address that is not loopback."""
    checked = parse_address(address)
    if not _LOOPBACK.match(checked):
        raise DecodeError("the tcp transport reaches loopback addresses only: use the tor transport")
    return split(checked)


class TcpListener:
    """A loopback port; its address belongs to no key."""

    def __init__(self, listener: trio.SocketListener, host: str) -> None:
        self._listener = listener
        self._address = Address(f"{host}:{port_of(listener)}")

    @property
    def address(self) -> Address:
        """Where others on this machine reach this listener."""
        return self._address

    async def serve(self, handler: StreamHandler) -> None:
        """Run `handler` for every incoming stream until cancelled, see `Listener.serve`."""
        await serve_streams(self._listener, handler)

    async def published(self) -> None:
        """Return at once: a port that listens can be found."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close the port; streams already accepted are left to their handlers."""
        await self._listener.aclose()


class TcpTransport:
    """Implements `Transport` on loopback.

    In a testnet that tries faults, each daemon has a loopback address of its own, `host`, and all connections
    pass one relay, at `path`: it is told the address wanted, a line, and answers with an empty line.
    """

    def __init__(self, host: str = LOOPBACK, path: Endpoint | None = None) -> None:
        self._host = host
        self._path = path

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        """Listen on the port of `previous`, or on one of the kernel's choice; `seed` has no part in it.

        Raises `UsageError` when `previous` is not loopback and `TransportError` when its port is taken.
        """
        try:
            host, port = (self._host, 0) if previous is None else _loopback(previous)
        except DecodeError as error:
            raise UsageError(str(error)) from None
        return TcpListener(await listen_on_loopback(port, host), host)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect to a loopback address; there are no circuits, so `isolation` has nothing to separate.

        Raises `TransportError` when `address` is not loopback, before any socket is opened, and when nobody
        listens there: whose address it is, a stranger may have said.
        """
        try:
            host, port = _loopback(address)
        except DecodeError as error:
            raise TransportError(str(error)) from None
        if self._path is not None:
            return await say_ahead(await self._connect_by(self._path, address), ahead)
        try:
            stream = await trio.open_tcp_stream(host, port)
        except OSError:
            raise TransportError("nobody listens at this loopback port") from None
        return await say_ahead(stream, ahead)

    async def _connect_by(self, path: Endpoint, address: Address) -> trio.abc.Stream:
        try:
            stream = await trio.open_tcp_stream(path.host, path.port, local_address=self._host)
        except OSError:
            raise TransportError("the proxy on the path does not answer") from None
        try:
            await stream.send_all(f"{address}\n".encode())
            if await stream.receive_some(1) != b"\n":
                raise TransportError("nobody listens at this loopback port")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.aclose_forcefully(stream)
            raise TransportError("nobody listens at this loopback port") from None
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream
