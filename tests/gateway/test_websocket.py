"""MQTT over WebSockets: frames however cut, and pages of other sites that come to nothing."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import BYTES, client_context, running, secured, tls
from made_certificates import Certificates
from wsproto import ConnectionType, WSConnection, events
from wsproto.connection import Connection

from hushcast_gateway.http.websocket import CHUNK, MAX_HEADERS, WebSocketStream
from hushcast_gateway.sections.listen_section import ListenSection

REQUEST = {
    "Host": "127.0.0.1:9001",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",  # RFC 6455, section 1.3
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Protocol": "mqtt",
}
ACCEPTED = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def request(first: str = "GET /mqtt HTTP/1.1", **changes: str | None) -> bytes:
    """Write a request; `sec_websocket_key=None` leaves a header out."""
    headers: dict[str, str | None] = dict(REQUEST)
    for name, value in changes.items():
        name = name.replace("_", "-")
        headers[next((known for known in REQUEST if known.lower() == name), name)] = value
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1")


async def head(stream: trio.abc.ReceiveStream) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        data = await stream.receive_some()
        if not data:
            break
        received += data
    return received


class Client:
    """A client of WebSockets that may break any rule."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.machine = Connection(ConnectionType.CLIENT)

    @classmethod
    async def open(cls, stream: trio.abc.Stream, **changes: str | None) -> Client:
        await stream.send_all(request(**changes))
        answer = await head(stream)
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert ACCEPTED in answer
        assert b"Sec-WebSocket-Protocol: mqtt" in answer
        return cls(stream)

    async def send(self, event: events.Event) -> None:
        await self.stream.send_all(self.machine.send(event))

    async def event(self) -> events.Event | None:
        """Return the next event, `None` at the end."""
        while True:
            for event in self.machine.events():
                return event
            data = await self.stream.receive_some()
            if not data:
                return None
            self.machine.receive_data(bytes(data))

    async def receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            event = await self.event()
            assert isinstance(event, events.BytesMessage)
            received += event.data
        return received


WEBSOCKET = ListenSection(kind="ws")


async def test_a_client_of_others(certificates: Certificates) -> None:
    """By its own machine for the handshake, over TCP and TLS."""
    for place in (WEBSOCKET, tls(certificates, "wss")):
        async with running(place) as gateway:
            stream: trio.abc.Stream = await gateway.connect()
            if place.is_secure:
                stream = secured(stream, client_context(certificates))
            async with stream:
                client = WSConnection(ConnectionType.CLIENT)
                await stream.send_all(client.send(events.Request("127.0.0.1", "/", subprotocols=["mqtt"])))
                client.receive_data(bytes(await stream.receive_some()))
                (accepted,) = client.events()
                assert isinstance(accepted, events.AcceptConnection)
                assert accepted.subprotocol == "mqtt"
                await stream.send_all(client.send(events.BytesMessage(b"hello")))
                client.receive_data(bytes(await stream.receive_some()))
                (answer,) = client.events()
                assert isinstance(answer, events.BytesMessage)
                assert answer.data == b"hello"


@given(st.lists(st.integers(1, 400), max_size=20), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_bytes_come_through_however_they_are_cut(sizes: list[int], seed: int) -> None:
    trio.run(_cut, sizes, random.Random(seed))


async def _cut(sizes: list[int], chance: random.Random) -> None:
    """Messages and frames of any sizes, pings between them, sent in pieces of any sizes."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream, machine = WebSocketStream(ours), Connection(ConnectionType.CLIENT)
    said, wire = b"", b""
    for number, size in enumerate(sizes):
        data = chance.randbytes(size)
        said += data
        wire += machine.send(events.BytesMessage(data, message_finished=number + 1 == len(sizes)))
        if chance.random() < 0.3:
            wire += machine.send(events.Ping(b"p"))
    wire += machine.send(events.CloseConnection(1000))
    heard = b""
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            rest = wire
            while rest:
                size = chance.randint(1, 300)
                await theirs.send_all(rest[:size])
                rest = rest[size:]

        nursery.start_soon(send)
        with trio.fail_after(10):
            while data := await stream.receive_some(chance.randint(1, 500)):
                heard += data
    assert heard == said
    machine.receive_data(bytes(await theirs.receive_some()))
    assert isinstance(list(machine.events())[-1], events.CloseConnection)


async def test_a_frame_is_never_held_whole() -> None:
    """One of a gibibyte is announced; its bytes are handed on as they come."""
    ours, theirs = trio.testing.memory_stream_pair()
    stream = WebSocketStream(ours)
    mask = b"\0\0\0\0"
    await theirs.send_all(b"\x82\xff" + (1 << 30).to_bytes(8, "big") + mask + b"first")
    with trio.fail_after(5):
        assert await stream.receive_some() == b"first"
        for _ in range(20):
            await theirs.send_all(bytes(CHUNK))
            read = 0
            while read < CHUNK:
                read += len(await stream.receive_some())
    assert len(stream._received) == 0


async def test_pings_are_answered_while_messages_are_sent() -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        await client.send(events.Ping(b"are you there"))
        event = await client.event()
        assert isinstance(event, events.Pong)
        assert event.payload == b"are you there"
        await client.send(events.BytesMessage(b"x"))
        assert await client.receive(1) == b"x"


async def test_text_ends_the_connection() -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        await client.send(events.TextMessage("MQTT"))
        event = await client.event()
        assert isinstance(event, events.CloseConnection)
        assert event.code == 1003
        assert await client.event() is None


async def test_whoever_closes_is_answered() -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        await client.send(events.CloseConnection(1001))
        event = await client.event()
        assert isinstance(event, events.CloseConnection)
        assert event.code == 1001


async def test_the_gateway_closes_with_a_frame() -> None:
    async def leave(stream: trio.abc.Stream, peer: object) -> None:
        await stream.send_all(b"bye")

    async with running(WEBSOCKET, speak=leave) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        assert await client.receive(3) == b"bye"
        event = await client.event()
        assert isinstance(event, events.CloseConnection)
        assert event.code == 1000


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x82\x01x", 1002),  # not masked
        (b"\xc2\x81\0\0\0\0x", 1002),  # a reserved bit
        (b"\x83\x81\0\0\0\0x", 1002),  # a reserved opcode
        (b"\x89\xfe\x00\x7e\0\0\0\0" + bytes(126), 1002),  # a ping of 126 bytes
        (b"\x09\x80\0\0\0\0", 1002),  # a ping in pieces
        (b"\x80\x81\0\0\0\0x", 1002),  # the rest of nothing
        (b"\x82\xff" + b"\xff" * 8 + b"\0\0\0\0", 1002),  # a length of 64 bits
    ],
)
async def test_frames_that_break_the_rules_end_the_connection(frame: bytes, code: int) -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        await stream.send_all(frame)
        event = await client.event()
        assert isinstance(event, events.CloseConnection)
        assert event.code == code
        assert await client.event() is None


async def test_sending_to_one_who_has_closed_is_an_error_of_streams() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    stream = WebSocketStream(ours)
    await theirs.send_all(Connection(ConnectionType.CLIENT).send(events.CloseConnection(1000)))
    assert await stream.receive_some() == b""
    assert await stream.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"x")
    await stream.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


async def test_what_was_said_before_the_goodbye_is_heard_although_nobody_is_there_any_more() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    stream, machine = WebSocketStream(ours), Connection(ConnectionType.CLIENT)
    said = [
        events.BytesMessage(b"last"),
        events.Ping(),
        events.BytesMessage(b"word"),
        events.CloseConnection(1000),
    ]
    await theirs.send_all(b"".join(machine.send(event) for event in said))
    await theirs.aclose()
    assert await stream.receive_some() == b"lastword"
    assert await stream.receive_some() == b""


# The request

REFUSED = {
    "no upgrade": (request(upgrade=None), 426),
    "another upgrade": (request(upgrade="h2c"), 426),
    "no connection header": (request(connection=None), 426),
    "another version": (request(sec_websocket_version="8"), 426),
    "no key": (request(sec_websocket_key=None), 400),
    "no subprotocol": (request(sec_websocket_protocol=None), 400),
    "another subprotocol": (request(sec_websocket_protocol="wamp"), 400),
    "a POST": (request("POST /mqtt HTTP/1.1"), 426),
    "HTTP/1.0": (request("GET /mqtt HTTP/1.0"), 426),
    "no host": (request(host=None), 400),
    "no HTTP": (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00\r\n\r\n", 400),
    "headers without end": (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (MAX_HEADERS // 6 + 10), 431),
    "headers that a second read completes": (request(x="y" * MAX_HEADERS), 431),
    "a body": (request(content_length="5") + b"hello", 400),
    "a body in chunks": (request(transfer_encoding="chunked") + b"0\r\n\r\n", 400),
    "a body told in two ways": (request(content_length="5", transfer_encoding="chunked") + b"hello", 400),
    "a page of another site": (request(origin="https://evil.example"), 403),
    "a page of another port": (request(origin="http://127.0.0.1:8000"), 403),
    "a page from a file": (request(origin="null"), 403),
    "a site that took our address": (
        request(host="evil.example:9001", origin="http://evil.example:9001"),
        403,
    ),
    "two origins": (request(origin="http://127.0.0.1:9001\r\nOrigin: https://evil.example"), 403),
}


@pytest.mark.parametrize("wrong", REFUSED)
async def test_what_is_no_request_for_mqtt_is_refused(wrong: str) -> None:
    said, status = REFUSED[wrong]
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        await stream.send_all(said)
        answer = await head(stream)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert await stream.receive_some() == b""
        assert gateway.peers == []
        assert gateway.counters["handshakes_failed"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"connection": "keep-alive, Upgrade"},
        {"sec_websocket_protocol": "mqttv3.1, mqtt"},
        {"sec_websocket_protocol": "mqttv3.1"},
        {"origin": "https://dashboard.example"},
        {"origin": "http://127.0.0.1:9001"},  # as paho has it
        {"host": "localhost:9001", "origin": "http://localhost:9001"},
    ],
)
async def test_who_may_connect(changes: dict[str, str | None]) -> None:
    place = ListenSection(kind="ws", origins=("https://dashboard.example",))
    async with running(place) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream, **changes)
        await client.send(events.BytesMessage(b"x"))
        assert await client.receive(1) == b"x"


async def test_with_a_certificate_a_name_is_nobody_elses(certificates: Certificates) -> None:
    async with running(tls(certificates, "wss")) as gateway:

        async def ask(**changes: str | None) -> bytes:
            async with secured(await gateway.connect(), client_context(certificates)) as stream:
                await stream.send_all(request(**changes))
                return await head(stream)

        same = {"host": "gateway.example:8884", "origin": "https://gateway.example:8884"}
        assert (await ask(**same)).startswith(b"HTTP/1.1 101 ")
        assert (await ask(origin="https://evil.example")).startswith(b"HTTP/1.1 403 ")


async def test_what_comes_with_the_request_is_not_lost() -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = Client(stream)
        await stream.send_all(request() + client.machine.send(events.BytesMessage(b"early")))
        answer = await head(stream)
        client.machine.receive_data(answer.partition(b"\r\n\r\n")[2])
        assert await client.receive(5) == b"early"


async def test_many_bytes() -> None:
    async with running(WEBSOCKET) as gateway, await gateway.connect() as stream:
        client = await Client.open(stream)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, events.BytesMessage(BYTES))
            assert await client.receive(len(BYTES)) == BYTES
