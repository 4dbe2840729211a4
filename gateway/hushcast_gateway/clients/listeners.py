"""Listeners: take connections over TCP, TLS and Unix sockets, for MQTT, WebSockets and HTTP, as streams."""

from __future__ import annotations

import os
import socket as sockets
import ssl
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import trio

from hushcast_gateway.clients.tls import common_name, server_context
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.extras import how_to_get
from hushcast_runtime.transports.base import StreamHandler, TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots
from hushcast_runtime.transports.local_sockets import listen_at
from hushcast_runtime.transports.streams import serve_streams

HANDSHAKE_WITHIN = 10.0  # seconds in which TLS and WebSockets are agreed upon
MAX_HANDSHAKES = 128  # at once; one more takes the place of another
LINGER_WITHIN = 1.0  # seconds that a client may take to hear why it was disconnected
MAX_LINGER = 1 << 20  # bytes that are read meanwhile, and thrown away

_UCRED = struct.Struct("3i")  # pid, uid, gid: unix(7)

Serve = Callable[[trio.abc.Stream, ClientPeer], Awaitable[None]]
"""Speaks MQTT with a client until that is gone."""

Accept = Callable[[trio.abc.Stream, frozenset[str], bool], Awaitable[trio.abc.Stream]]
"""Agrees on a WebSocket; needs an extra, and so is loaded where one is wanted (`websocket.accept`)."""

Answer = Callable[[trio.abc.Stream, ListenSection, ClientPeer], Awaitable[None]]
"""Answers requests; loaded as that (`HttpDoor.serve`)."""


class Listeners:
    """All places where a gateway is reached."""

    def __init__(
        self,
        places: Sequence[ListenSection],
        group: str | None,
        serve: Serve,
        counters: Counters,
        env: Environment,
    ) -> None:
        """`group` may use Unix sockets, too; the owner alone unless given."""
        self._env = env
        self._places = places
        self._group = group
        self._serve = serve
        self._counters = counters
        self._shaking_hands = ConnectionSlots(MAX_HANDSHAKES, note=lambda: counters.add("handshakes_dropped"))
        self._contexts: dict[int, ssl.SSLContext] = {}
        self._accept: Accept | None = None
        self._answer: Answer | None = None

    def read_certificates(self) -> None:
        """Read certificates and keys, for connections from now on; `UsageError` changes nothing."""
        self._contexts = self._read()

    def _read(self) -> dict[int, ssl.SSLContext]:
        found = {}
        for number, place in enumerate(self._places):
            if place.is_secure:
                try:
                    found[number] = server_context(place)
                except UsageError as error:
                    raise UsageError(f"listen #{number + 1}: {error}") from None
        return found

    async def run(
        self, *, task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen until cancelled; the caller holds the lock of the state directory. Raises `UsageError`."""
        self.read_certificates()
        if any(place.has_websockets for place in self._places):
            self._accept = _accept_websockets()
        if any(place.speaks_http for place in self._places):
            self._answer = self._http()
        async with AsyncExitStack() as opened:
            listeners = []
            for number, place in enumerate(self._places):
                listeners.append(await opened.enter_async_context(await _open(number, place, self._group)))
                if place.path is not None:
                    opened.callback(Path(place.path).unlink, missing_ok=True)
            async with trio.open_nursery() as nursery:
                for number, listener in enumerate(listeners):
                    nursery.start_soon(serve_streams, listener, self._taker(number))
                task_status.started(listeners)

    def _taker(self, number: int) -> StreamHandler:
        place = self._places[number]

        async def take(socket: trio.abc.Stream) -> None:
            assert isinstance(socket, trio.SocketStream)
            try:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    if place.kind in ("tcp", "unix"):
                        await self._serve(socket, ClientPeer(local=place.is_local, uid=_uid(socket, place)))
                    elif place.kind == "http":
                        await self._speak(_Unclosed(socket), place, _uid(socket, place))
                    else:
                        await self._after_handshake(socket, number)
            finally:
                await _linger(socket)

        return take

    async def _after_handshake(self, socket: trio.SocketStream, number: int) -> None:
        place = self._places[number]
        try:
            with self._shaking_hands.place(HANDSHAKE_WITHIN):
                stream, name = await self._shake_hands(socket, number)
        except (TransportError, PeerError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._counters.add("handshakes_failed")
            return
        async with stream:
            await self._speak(stream, place, None, name)

    async def _speak(
        self, stream: trio.abc.Stream, place: ListenSection, uid: int | None, certificate: str | None = None
    ) -> None:
        """Speak with a client as the place has it."""
        peer = ClientPeer(local=place.is_local, uid=uid, certificate=certificate)
        if place.speaks_http:
            assert self._answer is not None, "it is there while there are such places"
            await self._answer(stream, place, peer)
        else:
            await self._serve(stream, peer)

    def _http(self) -> Answer:
        try:
            from hushcast_gateway.http.http_door import HttpDoor
        except ModuleNotFoundError:
            raise UsageError(f"kind http and https need an extra: {how_to_get('gateway')}") from None
        return HttpDoor(self._serve, self._env, self._counters).serve

    async def _shake_hands(
        self, socket: trio.SocketStream, number: int
    ) -> tuple[trio.abc.Stream, str | None]:
        place = self._places[number]
        stream: trio.abc.Stream = _Unclosed(socket)
        name = None
        if (context := self._contexts.get(number)) is not None:
            secured = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
            await secured.do_handshake()
            stream, name = _Secured(secured), common_name(secured)
        if place.has_websockets:
            assert self._accept is not None
            stream = await self._accept(stream, frozenset(place.origins), place.is_secure)
        return stream, name


class _Secured(trio.abc.HalfCloseableStream):
    """A stream over TLS whose end can be told before it is closed."""

    def __init__(self, inside: trio.SSLStream[trio.abc.Stream]) -> None:
        self._inside = inside

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inside.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inside.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._inside.receive_some(max_bytes)

    async def send_eof(self) -> None:
        # Nothing is read behind this, of what was encrypted; the socket is read until its end (`_linger`).
        await self._inside.aclose()

    async def aclose(self) -> None:
        await self._inside.aclose()


class _Unclosed(trio.abc.Stream):
    """A socket that stays open when what speaks through it is done: not all of it may have been heard."""

    def __init__(self, socket: trio.SocketStream) -> None:
        self._socket = socket

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._socket.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._socket.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._socket.receive_some(max_bytes)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def _accept_websockets() -> Accept:
    try:
        from hushcast_gateway.http.websocket import accept
    except ModuleNotFoundError:
        raise UsageError(f"kind ws and wss need an extra: {how_to_get('gateway')}") from None
    return accept


async def _open(number: int, place: ListenSection, group: str | None) -> trio.SocketListener:
    where = f"listen #{number + 1}"
    if place.path is not None:
        what = "HTTP" if place.speaks_http else "MQTT"
        return listen_at(Path(place.path), group, f"{where}: the {what} socket")
    try:
        (listener,) = await trio.open_tcp_listeners(place.port or 0, host=place.host)
    except OSError as error:
        # What trio says has the address in it twice.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"{where}: {place.name} cannot be opened: {reason}") from None
    return listener


def _uid(socket: trio.SocketStream, place: ListenSection) -> int | None:
    if place.path is None:
        return None
    found = socket.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _UCRED.size)
    return int(_UCRED.unpack(found)[1])


async def _linger(socket: trio.SocketStream) -> None:
    """Let a client hear the last that was said: closing with bytes unread would take it back."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(LINGER_WITHIN):
        await socket.send_eof()
        read = 0
        while read < MAX_LINGER and (data := await socket.receive_some(65_536)):
            read += len(data)
