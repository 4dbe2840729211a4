"""A gateway's door for HTTP over streams in memory, and a client that speaks any HTTP."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import h11
import trio
from memory_gateway import Client, Gateway, running
from trio.testing import memory_stream_pair

from hushcast_gateway.clients.users import GatewayUsers
from hushcast_gateway.counters import GATEWAY_COUNTERS
from hushcast_gateway.http.http_door import HttpDoor
from hushcast_gateway.passwords import Passwords
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.sections.access_sections import AccessSection, UserSection
from hushcast_gateway.sections.listen_section import ListenSection
from hushcast_gateway.settings import GatewaySettings
from hushcast_gateway.tokens import new_token, token_hash
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.wire.packets import V5, ConnAck, Connect
from hushcast_runtime.counters import Counters

PLACE = ListenSection(kind="http", port=8080)
StreamPair = Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]]
TOKEN = new_token(random.Random(1).randbytes)
UNIX = ListenSection(kind="http", path="/run/http.sock")


class HttpResponse:
    """What was answered."""

    def __init__(self, response: h11.Response, body: bytes) -> None:
        self.status = response.status_code
        self.headers = {name.decode(): value.decode() for name, value in response.headers}
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The lines of a stream of JSON."""
        return [json.loads(line) for line in self.body.splitlines()]


class HttpCaller:
    """One connection of a client."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.machine = h11.Connection(h11.CLIENT)
        self._lines = b""

    async def begin(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Send a request."""
        own = {"Host": "127.0.0.1:8080", **headers}
        if body or method in ("POST", "PUT"):
            own["Content-Length"] = str(len(body))
        asked = h11.Request(
            method=method, target=target, headers=[(k.encode(), v.encode()) for k, v in own.items()]
        )
        data = self.machine.send(asked) or b""
        data += self.machine.send(h11.Data(data=body)) or b""
        await self.stream.send_all(data + (self.machine.send(h11.EndOfMessage()) or b""))

    async def event(self) -> Any:
        while (event := self.machine.next_event()) is h11.NEED_DATA:
            self.machine.receive_data(bytes(await self.stream.receive_some()))
        return event

    async def ask(
        self, method: str, target: str, body: bytes = b"", user: str = "", **headers: str
    ) -> HttpResponse:
        """Ask, and return the whole answer; `_` in the name of a header is a hyphen."""
        written = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            written["Authorization"] = "Basic " + b64encode(user.encode()).decode()
        if self.machine.our_state is h11.DONE:
            self.machine.start_next_cycle()
        await self.begin(method, target, written, body)
        response = await self.event()
        while isinstance(response, h11.InformationalResponse):
            response = await self.event()
        assert isinstance(response, h11.Response), response
        found = b""
        while not isinstance(event := await self.event(), h11.EndOfMessage):
            assert isinstance(event, h11.Data), event
            found += bytes(event.data)
        return HttpResponse(response, found)

    async def stream_of(self, target: str, **headers: str) -> h11.Response:
        """Begin a stream, and return its head."""
        await self.begin("GET", target, headers)
        response = await self.event()
        assert isinstance(response, h11.Response), response
        return response

    async def line(self) -> bytes:
        """Return the next line of a stream, `b""` at its end."""
        while b"\n" not in self._lines:
            event = await self.event()
            if not isinstance(event, h11.Data):
                return b""
            self._lines += bytes(event.data)
        line, _, self._lines = self._lines.partition(b"\n")
        return line + b"\n"

    async def message(self) -> Any:
        """Return the next event of a stream of JSON."""
        return json.loads(await self.line())


class HttpGateway:
    """A gateway with a door."""

    def __init__(self, gateway: Gateway, nursery: trio.Nursery, place: ListenSection, local: bool) -> None:
        self.gateway = gateway
        self.counters = Counters(GATEWAY_COUNTERS)
        self.place = place
        self.peer = ClientPeer(local=local)
        self.served = 0
        """Connections that are open."""
        self._nursery = nursery
        env = gateway.state.env
        self.door = HttpDoor(gateway.server.serve, env, self.counters)

    async def dial(self, pair: StreamPair = memory_stream_pair) -> HttpCaller:
        ours, theirs = pair()

        async def serve() -> None:
            self.served += 1
            async with theirs:
                await self.door.serve(theirs, self.place, self.peer)
            self.served -= 1

        self._nursery.start_soon(serve)
        await trio.lowlevel.checkpoint()
        return HttpCaller(ours)

    async def mqtt(self, user: str | None = None, password: bytes | None = None) -> Client:
        """Connect a client of MQTT."""
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.gateway.server.serve, theirs, self.peer)
        client = Client(ours, V5)
        await client.send(Connect(V5, "", username=user, password=password))
        packet = await client.next()
        assert isinstance(packet, ConnAck)
        assert packet.reason == 0
        return client

    async def ask(
        self, method: str, target: str, body: bytes = b"", user: str = "", **headers: str
    ) -> HttpResponse:
        """Ask over a connection of its own."""
        return await (await self.dial()).ask(method, target, body, user, **headers)


def settings(**more: Any) -> GatewaySettings:
    """Return those with alice, who may use `a/`, a phone, and anybody, who may use `x/` and `kept/`."""
    return GatewaySettings(
        users={
            "alice": UserSection(
                password="hash of right",
                tokens=(token_hash(TOKEN.encode()),),
                publish=("a/#",),
                subscribe=("a/#",),
            ),
            "phone": UserSection(password="hash of right", publish=("+",), subscribe=("+",)),
        },
        anonymous=AccessSection(publish=("x/#", "kept/#"), subscribe=("x/#", "kept/#")),
        **more,
    )


@asynccontextmanager
async def http_gateway(
    place: ListenSection = PLACE,
    local: bool = True,
    history: tuple[str, ...] = ("kept/#",),
    within: float = 20,
    **options: Any,
) -> AsyncIterator[HttpGateway]:
    """Run a gateway with users and a history for the block."""

    async def compute(function: Any, *args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*args)

    passwords = Passwords(
        compute, lambda size: bytes(size), lambda known, given: known == f"hash of {given.decode()}"
    )
    users = GatewayUsers(settings(), passwords)
    broker = MqttSettings(history=history, history_seconds=3_600)
    with trio.fail_after(within):
        async with (
            running(authenticate=users.authenticate, settings=broker, **options) as gateway,
            trio.open_nursery() as nursery,
        ):
            yield HttpGateway(gateway, nursery, place, local)
            nursery.cancel_scope.cancel()
