"""WebSockets: MQTT in binary frames over HTTP/1.1 (OASIS MQTT 5.0, section 6; RFC 6455), as a trio stream.

Frames mean nothing to MQTT: their bytes are handed on as they come, so that no frame is ever held whole.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

import h11
import trio
from wsproto import events
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError, generate_accept_token

from hushcast_gateway.http.browser_origins import is_ours
from hushcast_protocol.base.errors import PeerError

SUBPROTOCOLS = b"mqtt", b"mqttv3.1"  # who speaks 3.1 hears over MQTT that it is not spoken here
MAX_HEADERS = 8_192  # bytes of a request with all its headers; those of a browser have some 600
CHUNK = 65_536  # bytes read at once
CLOSE_WITHIN = 1.0  # seconds that saying goodbye may take


class HandshakeError(PeerError):
    """A request that is none for MQTT over WebSockets, or that a page of another site made."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class WebSocketStream(trio.abc.HalfCloseableStream):
    """The bytes in binary frames. They end where the other end closes or breaks the rules."""

    def __init__(self, transport: trio.abc.Stream, trailing: bytes = b"") -> None:
        """`trailing` is what came behind the request already."""
        self._transport = transport
        self._machine = Connection(ConnectionType.SERVER, trailing_data=trailing)
        self._sending = trio.StrictFIFOLock()  # a pong goes out between two messages, never within one
        self._received = bytearray()
        self._ended = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes as one binary frame."""
        await self._send(events.BytesMessage(data=bytes(data)))

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the transport takes something."""
        async with self._sending:
            await self._transport.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return bytes of MQTT, nothing at the end."""
        await trio.lowlevel.checkpoint()
        while not self._received and not self._ended:
            for event in self._machine.events():  # one by one: a ping is answered before a goodbye is read
                await self._handle(event)
                if self._ended:
                    break
            if not self._received and not self._ended:
                data = await self._transport.receive_some(CHUNK)
                self._ended = not data
                self._machine.receive_data(bytes(data))
        taken = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        return taken

    async def send_eof(self) -> None:
        """Say goodbye; what the other end still sends can be read."""
        await self._close(CloseReason.NORMAL_CLOSURE)

    async def aclose(self) -> None:
        """Say goodbye, if the other end takes it within a second, and close the connection."""
        self._ended = True
        try:
            with _gone(), trio.move_on_after(CLOSE_WITHIN):
                await self._close(CloseReason.NORMAL_CLOSURE)
        finally:
            await self._transport.aclose()

    async def _handle(self, event: events.Event) -> None:
        match event:
            case events.BytesMessage(data=data):
                self._received += data
            case events.Ping():
                with _gone():
                    await self._send(event.response())
            case events.CloseConnection():
                self._ended = True
                with _gone():
                    await self._send(event.response())
            case events.TextMessage():
                self._ended = True
                with _gone():
                    await self._close(CloseReason.UNSUPPORTED_DATA)
            case _:
                pass  # a pong

    async def _close(self, code: CloseReason) -> None:
        if self._machine.state is ConnectionState.OPEN:
            await self._send(events.CloseConnection(code=code))

    async def _send(self, event: events.Event) -> None:
        async with self._sending:
            try:
                data = self._machine.send(event)
            except ProtocolError:
                raise trio.BrokenResourceError("the other end has closed") from None
            await self._transport.send_all(data)


def _gone() -> AbstractContextManager[None]:
    """Say something to one who may have left; what was heard before still counts."""
    return suppress(trio.BrokenResourceError, trio.ClosedResourceError)


async def accept(transport: trio.abc.Stream, origins: frozenset[str], is_secure: bool) -> WebSocketStream:
    """Answer the request of a client and return its stream; raises `HandshakeError`, which it has been told.

    Any path will do, as nothing else is served. `origins` are the web sites whose pages may connect.
    """
    machine = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADERS)
    try:
        try:
            request = await _request(transport, machine)
            token, spoken = _check(request, origins, is_secure)
        except h11.RemoteProtocolError as error:
            raise HandshakeError(error.error_status_hint, "not HTTP/1.1") from None
        headers = [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", token)]
        answer = h11.InformationalResponse(
            status_code=101, headers=[*headers, (b"Sec-WebSocket-Protocol", spoken)]
        )
        await transport.send_all(machine.send(answer) or b"")
    except HandshakeError as error:
        await _refuse(transport, machine, error)
        raise
    return WebSocketStream(transport, machine.trailing_data[0])


async def _request(transport: trio.abc.Stream, machine: h11.Connection) -> h11.Request:
    read = 0
    while (event := machine.next_event()) is h11.NEED_DATA:
        # h11 bounds what is incomplete: with a read that completes it, a request could have twice as much.
        data = await transport.receive_some(MAX_HEADERS + 1 - read)
        if not data:
            raise trio.BrokenResourceError("the other end went away before it had asked")
        read += len(data)
        machine.receive_data(bytes(data))
    if not isinstance(event, h11.Request):
        raise HandshakeError(400, "no request")
    if read - len(machine.trailing_data[0]) > MAX_HEADERS:
        raise HandshakeError(431, "too many headers")
    return event


def _check(request: h11.Request, origins: frozenset[str], is_secure: bool) -> tuple[bytes, bytes]:
    """Return the token that accepts a request, and the subprotocol; raises `HandshakeError`."""
    headers: dict[bytes, list[bytes]] = {}
    for name, value in request.headers:
        headers.setdefault(name, []).append(value.strip())
    words = {word.strip().lower() for value in headers.get(b"connection", ()) for word in value.split(b",")}
    if b"transfer-encoding" in headers or headers.get(b"content-length", [b"0"]) != [b"0"]:
        raise HandshakeError(400, "a body, which would be taken for frames")
    if request.method != b"GET" or request.http_version != b"1.1" or b"upgrade" not in words:
        raise HandshakeError(426, "no request for a WebSocket")
    if [value.lower() for value in headers.get(b"upgrade", ())] != [b"websocket"]:
        raise HandshakeError(426, "no request for a WebSocket")
    if headers.get(b"sec-websocket-version") != [b"13"]:
        raise HandshakeError(426, "another version of WebSockets")
    offered = {
        word.strip() for value in headers.get(b"sec-websocket-protocol", ()) for word in value.split(b",")
    }
    spoken = next((one for one in SUBPROTOCOLS if one in offered), None)
    if spoken is None:
        raise HandshakeError(400, "the subprotocol mqtt is not offered")
    keys = headers.get(b"sec-websocket-key", [])
    if len(keys) != 1:
        raise HandshakeError(400, "no key")
    if not is_ours(headers.get(b"origin", []), headers.get(b"host", []), origins, is_secure):
        raise HandshakeError(403, "a page of a site that may not connect")
    return generate_accept_token(keys[0]), spoken


async def _refuse(transport: trio.abc.Stream, machine: h11.Connection, error: HandshakeError) -> None:
    headers = [("Connection", "close"), ("Content-Length", "0")]
    if error.status == 426:
        headers += [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    answer = h11.Response(status_code=error.status, headers=headers)
    if machine.our_state in (h11.IDLE, h11.SEND_RESPONSE):
        await transport.send_all(machine.send(answer) or b"")
