"""A connection that speaks HTTP/1.1 (RFC 9112): requests in, answers and streams out, by h11 and wsproto."""

from __future__ import annotations

import h11
import trio
from wsproto import events
from wsproto.utilities import generate_accept_token

from hushcast_gateway.http.websocket import WebSocketStream
from hushcast_protocol.http.http_request import HttpRequest
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.http.routes import METHODS

MAX_HEAD = 16_384  # bytes of a request with all its headers: buttons of a message stand there, too
MAX_UNASKED = 65_536  # bytes that a client sends while it is answered; then it is gone
CHUNK = 65_536  # bytes read at once
WRITE_WITHIN = 10.0  # seconds in which an answer must be taken; a stream's writes are the broker's to bound

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class EventSocket(WebSocketStream):
    """A WebSocket that carries texts."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send UTF-8 as one text frame."""
        await self._send(events.TextMessage(data=bytes(data).decode()))


class HttpConnection:
    """One client's requests, one after the other."""

    def __init__(self, transport: trio.abc.Stream) -> None:
        self._transport = transport
        self._machine = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._request: h11.Request | None = None
        self._socket: EventSocket | None = None
        self._unasked = 0
        self._is_cut = False
        self.beside: list[tuple[str, str]] = []
        """Headers of all answers to this request."""
        self.status = 0
        """Of the answer to this request; 0 until it is given."""

    async def next_request(self) -> HttpRequest | None:
        """Return the next request as far as its headers, `None` at the end.

        Raises `HttpRefusal` for what is none; the connection ends then.
        """
        self.beside, self.status, self._request = [], 0, None
        try:
            event = await self._event()
        except h11.RemoteProtocolError as error:
            code = error.error_status_hint * 100
            raise HttpRefusal(code, "invalid request: not HTTP/1.1, or too many headers") from None
        if not isinstance(event, h11.Request):
            return None
        # h11 bounds what is incomplete, and one read may bring more than that.
        if sum(len(name) + len(value) for name, value in event.headers) + len(event.target) > MAX_HEAD:
            raise HttpRefusal(43100, "invalid request: too many headers")
        self._request = event
        self._unasked = 0
        if not self._announced() and not self._values(b"transfer-encoding"):
            self._machine.next_event()  # its end: there is no body
        headers = tuple((name.decode("latin-1").lower(), value) for name, value in event.headers)
        return HttpRequest(event.method.decode("latin-1"), event.target.decode("latin-1"), headers)

    async def body(self, most: int) -> bytes:
        """Return the body of a request; raises `HttpRefusal`, and `BrokenResourceError` where it is cut."""
        found, size = [], 0
        if self._announced() > most:
            raise _too_large()
        try:
            if self._machine.they_are_waiting_for_100_continue:
                await self._say(h11.InformationalResponse(status_code=100, headers=[]))
            while self._machine.their_state is h11.SEND_BODY:
                event = await self._event()
                if isinstance(event, h11.EndOfMessage):
                    break
                if not isinstance(event, h11.Data):
                    raise trio.BrokenResourceError("the client left within its request")
                size += len(event.data)
                if size > most:
                    raise _too_large()
                found.append(bytes(event.data))
        except h11.RemoteProtocolError:
            raise HttpRefusal(40000, "invalid request: its body cannot be read") from None
        return b"".join(found)

    async def answer(self, status: int, body: bytes, content_type: str) -> None:
        """Give a whole answer; one that the client does not take in time ends the connection."""
        self.status = status
        headers = list(self.beside)
        if status != 204:  # which has no body, and may not say so (RFC 9110 §8.6)
            headers += [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        if status in (204, 405):
            headers.append(("Allow", ", ".join(METHODS)))
        if status == 401:
            headers.append(("WWW-Authenticate", 'Basic realm="hushcast", charset="UTF-8"'))
        if self._machine.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        try:
            with trio.fail_after(WRITE_WITHIN):
                head = self._machine.send(h11.Response(status_code=status, headers=headers)) or b""
                rest = self._machine.send(h11.Data(data=body)) or b""
                await self._write(head + rest + (self._machine.send(h11.EndOfMessage()) or b""))
        except trio.TooSlowError:
            raise trio.BrokenResourceError("the client does not read") from None

    async def begin(self, content_type: str) -> None:
        """Begin a stream: chunks, or, where there is no content type, a WebSocket."""
        self.status = 200 if content_type else 101
        if not content_type:
            token = generate_accept_token(self._key())
            headers = [("Upgrade", "websocket"), ("Connection", "Upgrade")]
            accept = ("Sec-WebSocket-Accept", token.decode())
            await self._say(h11.InformationalResponse(status_code=101, headers=[*headers, accept]))
            self._socket = EventSocket(self._transport, self._machine.trailing_data[0])
            return
        headers = [("Content-Type", content_type), ("Cache-Control", "no-store"), *self.beside]
        await self._say(h11.Response(status_code=200, headers=headers))

    async def stream(self, parts: list[bytes]) -> None:
        """Give parts of a stream."""
        if self._socket is not None:
            for one in parts:
                await self._socket.send_all(one)
        else:
            await self._say(h11.Data(data=b"".join(parts)))

    async def end(self) -> None:
        """End a stream."""
        if self._socket is not None:
            await self._socket.send_eof()
        else:
            await self._say(h11.EndOfMessage())

    async def watch(self) -> bool:
        """Wait until the client sends something beside; return whether it is still there."""
        if self._socket is not None:
            data = await self._socket.receive_some(CHUNK)
        elif self._machine.their_state is h11.SEND_BODY:  # of a request that needs none
            try:
                event = await self._event()
            except h11.RemoteProtocolError:
                return False
            data = bytes(event.data) if isinstance(event, h11.Data) else b"-"
            if isinstance(event, h11.ConnectionClosed):
                return False
        else:
            data = await self._receive()
            self._machine.receive_data(data)
        self._unasked += len(data)
        return bool(data) and self._unasked <= MAX_UNASKED

    def next(self) -> bool:
        """Tell whether another request may follow, and be ready for it."""
        if (
            self._request is None
            or self._machine.our_state is not h11.DONE
            or self._machine.their_state is not h11.DONE
        ):
            return False
        self._machine.start_next_cycle()
        return True

    def asks_for_websocket(self) -> bool:
        """Tell whether a request asks for a WebSocket of a version that is spoken."""
        upgrade = b"websocket" in [value.lower() for value in self._values(b"upgrade")]
        is_plain = not self._announced() and not self._values(b"transfer-encoding")
        return (
            upgrade
            and is_plain
            and self._values(b"sec-websocket-version") == [b"13"]
            and len(self._values(b"sec-websocket-key")) == 1
        )

    def _key(self) -> bytes:
        return self._values(b"sec-websocket-key")[0]

    def _values(self, name: bytes) -> list[bytes]:
        assert self._request is not None, "asked of a request alone"
        return [value.strip() for each, value in self._request.headers if each == name]

    def _announced(self) -> int:
        """Return the length that the request says its body has; h11 has seen that it is a number."""
        return int(next(iter(self._values(b"content-length")), b"0"))

    async def _event(self) -> object:
        """Return h11's next event; raises its `RemoteProtocolError`."""
        while (event := self._machine.next_event()) is h11.NEED_DATA:
            self._machine.receive_data(await self._receive())
        return event

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._transport.receive_some(CHUNK))
        except _GONE:
            return b""

    async def _say(self, event: h11.Event) -> None:
        try:
            data = self._machine.send(event)
        except h11.LocalProtocolError:
            raise trio.BrokenResourceError("the client has left") from None
        await self._write(data or b"")

    async def _write(self, data: bytes) -> None:
        """Write bytes; where that was cut short, nothing that follows could be read."""
        if self._is_cut:
            raise trio.BrokenResourceError("a write before was cut short")
        self._is_cut = True
        await self._transport.send_all(data)
        self._is_cut = False


def _too_large() -> HttpRefusal:
    return HttpRefusal(41301, "the message is larger than this gateway takes")
