"""A hostile proxy, a hostile server: what they forge, swap, drop and repeat is found out; nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trio
from small_central import TOPIC, Person, SmallCentral, hears, small_central
from small_network import until

from hushcast_protocol.base.crypto.group import Scalar, received_scalar
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    AskTransformationFactor,
    AttachAnswer,
    DeliveriesAcknowledged,
    Detach,
    FromServer,
    Ping,
    Pong,
    ProxyRequest,
    ServerAnswer,
    ServerDelivery,
    TransformationFactor,
    UserAnswer,
    decode_from_proxy,
)
from hushcast_protocol.central.introduction import transformation
from hushcast_protocol.central.rerouting import WrappedMessage, rerouted, transformed, unwrap, wrap
from hushcast_runtime.transports import channel_writer, memory
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel

OUTSIDE = bytes(32)


class Hostile:
    """A listed proxy that says to the server what it likes."""

    def __init__(self, network: SmallCentral, connection: Any) -> None:
        self.network = network
        self.connection = connection
        self.number = 0
        self.factors: dict[bytes, Scalar] = {}

    async def ask(self, what: Any, number: int | None = None) -> Any:
        self.number += 1
        await self.connection.say(ProxyRequest(self.number if number is None else number, what))
        return (await self.hear()).what

    async def hear(self) -> Any:
        return await self.connection.hear()

    async def flood(self) -> None:
        """Ask and ask, and read nothing."""
        for number in range(1000):
            await self.connection.say(ProxyRequest(number, AskTransformationFactor(b"")))

    async def introduce(self, person: Person) -> None:
        blinding = Scalar.draw(self.network.env.randomness)
        answer = await self.ask(AskTransformationFactor(person.introduce(blinding).sealed))
        assert isinstance(answer, TransformationFactor)
        assert answer.pseudonym == person.pseudonym
        self.factors[person.pseudonym] = transformation(blinding, received_scalar(answer.factor))

    def turned(self, request: Any) -> Any:
        factor = self.factors[request.pseudonym]
        return msgspec.structs.replace(
            request, tokens=tuple(transformed(factor, token) for token in request.tokens)
        )

    async def subscriber(self) -> tuple[Person, int, bytes]:
        """Serve a user well, up to here; return the number of its attachment, and the salt."""
        person = self.network.person("subscribe")
        await self.introduce(person)
        answer = await self.ask(self.turned(person.subscribe(TOPIC)))
        assert answer.verdict == "accepted"
        answer = await self.ask(request_proofs.attach(person.pseudonym, person.secret))
        assert isinstance(answer, AttachAnswer)
        return person, self.number, answer.salt

    async def acknowledge(self, person: Person, attachment: int, chain: bytes, number: int) -> None:
        frame = request_proofs.acknowledge(person.secret, chain, number)
        await self.connection.say(DeliveriesAcknowledged(attachment, frame.number, frame.proof))


async def hostile(network: SmallCentral, role: str = "deliveries") -> Hostile:
    """Return a second, hostile proxy of a role."""
    member = network.add(f"hostile {role}", role)
    network.server.daemon.replace_proxies(network.proxies)
    connection = await network.as_proxy(member)
    assert await connection.ask(Ping()) == network.sign_of_life()
    return Hostile(network, connection)


def waiting(network: SmallCentral) -> int:
    return network.server.daemon.status()["deliveries_waiting"]


async def test_pseudonyms_of_another_proxy_are_out_of_reach() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        proxy = await hostile(network)
        person = ear.person
        for what in (
            person.subscribe(TOPIC),
            person.withdraw(),
            request_proofs.attach(person.pseudonym, person.secret),
            AskTransformationFactor(person.introduce().sealed),
        ):
            assert await proxy.ask(what) == UserAnswer("taken", None)
        assert network.server.count("refused_taken") == 4
        message = await network.published()
        await until(hears(ear, message))


async def test_swapped_pseudonyms_and_requests_of_its_own_making_are_refused() -> None:
    async with small_central() as network:
        proxy = await hostile(network)
        one, two = network.person("subscribe"), network.person("subscribe")
        await proxy.introduce(one)
        await proxy.introduce(two)
        request = proxy.turned(one.subscribe(TOPIC))
        for what in (
            msgspec.structs.replace(request, pseudonym=two.pseudonym),
            msgspec.structs.replace(request, serial=2),
            msgspec.structs.replace(request, tokens=request.tokens * 2),
            request_proofs.attach(one.pseudonym, two.secret),
        ):
            assert await proxy.ask(what) == UserAnswer("proof", None)
        answer = await proxy.ask(request)
        assert request_proofs.is_from_server(one.secret, request, answer)
        assert not request_proofs.is_from_server(one.secret, two.subscribe(TOPIC), answer)
        forged = UserAnswer("accepted", bytes(16))
        assert not request_proofs.is_from_server(one.secret, request, forged)
        assert not request_proofs.is_from_server(one.secret, request, UserAnswer("accepted", None))


async def test_a_delivery_that_is_dropped_or_said_twice_is_not_acknowledged() -> None:
    async with small_central() as network:
        proxy = await hostile(network)
        person, attachment, salt = await proxy.subscriber()
        for _ in range(2):
            await network.published()
        first, second = await proxy.hear(), await proxy.hear()
        # The user is shown the second one twice, and acknowledges two deliveries.
        chain = request_proofs.followed(request_proofs.followed(salt, second.wrapped), second.wrapped)
        await proxy.acknowledge(person, attachment, chain, 2)
        assert await proxy.hear() == Detach(attachment)
        assert network.server.count("refused_proof") == 1
        assert waiting(network) == 2
        # The same user at an honest proxy's pace: all of it comes.
        answer = await proxy.ask(request_proofs.attach(person.pseudonym, person.secret))
        again = [await proxy.hear() for _ in range(2)]
        factor = proxy.factors[person.pseudonym].inverse()
        bodies = {unwrap(person.key, rerouted(factor, frame.wrapped)) for frame in (first, second)}
        assert {unwrap(person.key, rerouted(factor, frame.wrapped)) for frame in again} == bodies
        chain = answer.salt
        for frame in again:
            chain = request_proofs.followed(chain, frame.wrapped)
        await proxy.acknowledge(person, proxy.number, chain, 2)
        await until(lambda: waiting(network) == 0)


async def test_replayed_attaches_and_acknowledgements_delete_nothing() -> None:
    async with small_central() as network:
        proxy = await hostile(network)
        person, attachment, salt = await proxy.subscriber()
        await network.published()
        delivery = await proxy.hear()
        chain = request_proofs.followed(salt, delivery.wrapped)
        old = request_proofs.acknowledge(person.secret, chain, 1)
        await proxy.connection.say(DeliveriesAcknowledged(attachment, old.number, old.proof))
        await until(lambda: waiting(network) == 0)
        await network.published()
        assert isinstance(await proxy.hear(), ServerDelivery)
        proxy.number += 1
        await proxy.connection.say(
            ProxyRequest(proxy.number, request_proofs.attach(person.pseudonym, person.secret))
        )
        assert await proxy.hear() == Detach(attachment)
        assert isinstance((await proxy.hear()).what, AttachAnswer)
        assert isinstance(await proxy.hear(), ServerDelivery)
        await proxy.connection.say(DeliveriesAcknowledged(proxy.number, old.number, old.proof))
        assert await proxy.hear() == Detach(proxy.number)
        assert waiting(network) == 1
        # What is said of attachments that are over, or never were, is nothing.
        await proxy.connection.say(
            DeliveriesAcknowledged(attachment, 1, bytes(16)), Detach(attachment), Detach(999)
        )
        await proxy.connection.say(DeliveriesAcknowledged(999, 1, bytes(16)), Ping())
        assert await proxy.hear() == network.sign_of_life()
        assert waiting(network) == 1


async def test_one_number_for_two_attachments_is_refused() -> None:
    async with small_central() as network:
        proxy = await hostile(network)
        person, attachment, _ = await proxy.subscriber()
        again = request_proofs.attach(person.pseudonym, person.secret)
        assert await proxy.ask(again, number=attachment) == UserAnswer("form", None)


async def test_publications_that_a_proxy_alters() -> None:
    async with small_central() as network:
        proxy = await hostile(network, "publications")
        ear = await network.subscriber()
        one, two = network.person("publish"), network.person("publish")
        await proxy.introduce(one)
        await proxy.introduce(two)
        message = network.message()

        def turned(person: Person) -> Any:
            request = proxy.turned(person.publish(message))
            wrapped = rerouted(proxy.factors[person.pseudonym], request.wrapped)
            return msgspec.structs.replace(request, wrapped=wrapped)

        good, other = turned(one), turned(two)
        for what, verdict in (
            (msgspec.structs.replace(good, pseudonym=two.pseudonym), "proof"),
            (msgspec.structs.replace(good, wrapped=other.wrapped), "proof"),
            (msgspec.structs.replace(good, tokens=good.tokens * 3), "proof"),
            (_with_points(good, other.wrapped.mask, good.wrapped.masked), "form"),
            (_with_points(good, good.wrapped.mask, other.wrapped.masked), "form"),
            (_with_points(good, OUTSIDE, good.wrapped.masked), "form"),
        ):
            assert await proxy.ask(what) == UserAnswer(verdict, None)
        for _ in range(3):
            answer = await proxy.ask(good)
            assert request_proofs.is_from_server(one.secret, good, answer)
        await until(hears(ear, message))
        await trio.sleep(10)
        assert len(ear.wrapped) == 1


def _with_points(request: Any, mask: bytes, masked: bytes) -> Any:
    return msgspec.structs.replace(request, wrapped=WrappedMessage(mask, masked, request.wrapped.payload))


async def test_a_proxy_that_asks_and_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_IN_FLIGHT", 1000)
    monkeypatch.setattr(channel_writer, "MAX_POSTED", 100)
    async with small_central() as network:
        proxy = await hostile(network)
        with pytest.raises(TransportError):
            await proxy.flood()
        await until(lambda: len(network.server.daemon.connected()) == 2)
        ear = await network.subscriber()
        message = await network.published()
        await until(hears(ear, message))


class FakeServer:
    """Answers proxies as a script says, under the server's name."""

    def __init__(self, network: SmallCentral) -> None:
        self.network = network
        self.answer: Callable[[ProxyRequest], list[FromServer]] = lambda request: []
        self.acknowledged: list[DeliveriesAcknowledged] = []
        self.channels: list[Any] = []

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        listener = await self.network.wires.transport().listen(self.network.server.service)
        task_status.started()
        await listener.serve(self._serve)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        network = self.network
        link = Link.respond(network.net.id, network.server.seed, network.env.randomness, MAX_CENTRAL_FRAME)
        channel, _ = await accept_channel(stream, link, decode_from_proxy)
        self.channels.append(channel)
        while batch := await channel.receive():
            for frame in batch:
                if isinstance(frame, Ping):
                    await channel.send(Pong(0, True))
                elif isinstance(frame, ProxyRequest):
                    for answer in self.answer(frame):
                        await channel.send(answer)
                elif isinstance(frame, DeliveriesAcknowledged):
                    self.acknowledged.append(frame)


async def faked(network: SmallCentral) -> FakeServer:
    await network.server.stop()
    server = FakeServer(network)
    await network.nursery.start(server.run)
    await until(lambda: len(server.channels) == 2, 120.0)
    await network.linked()
    return server


async def subscribed_and_faked(network: SmallCentral) -> tuple[Person, FakeServer]:
    """Return somebody whom the true server knows, and the fake one that stands in its place now."""
    person = network.person("subscribe")
    connection = await person.introduced(network.deliveries)
    await network.accepted(person, connection, person.subscribe(TOPIC))
    return person, await faked(network)


async def test_a_server_that_forges_drops_and_repeats_is_found_out() -> None:
    async with small_central() as network:
        server = await faked(network)
        person, other = network.person("subscribe"), network.person("subscribe")
        deliveries = network.deliveries

        def factor_of(pseudonym: bytes, factor: bytes) -> Any:
            return lambda request: [
                ServerAnswer(request.number, TransformationFactor(pseudonym, network.today, factor))
            ]

        def answers(what: Any) -> Any:
            return lambda request: [ServerAnswer(request.number, what)]

        for script, verdict in (
            (factor_of(person.pseudonym, bytes(32)), "closed"),
            (factor_of(person.pseudonym, b"\xff" * 32), "closed"),
            (answers(AttachAnswer(bytes(16))), "closed"),
            (answers(UserAnswer("quota", None)), "quota"),
            (answers(TransformationFactor(person.pseudonym, network.today + 5, b"\x01" + bytes(31))), "day"),
            (factor_of(other.pseudonym, b"\x01" + bytes(31)), "accepted"),
            (factor_of(person.pseudonym, b"\x01" + bytes(31)), "accepted"),
        ):
            server.answer = script
            connection = await network.connect(deliveries)
            assert (await connection.ask(person.introduce())).verdict == verdict
        assert network.deliveries.count("server_faults") >= 3
        request = person.subscribe(TOPIC)
        server.answer = answers(UserAnswer("accepted", bytes(16)))
        answer = await connection.ask(request)
        assert not request_proofs.is_from_server(person.secret, request, answer), "a receipt that is none"
        server.answer = answers(TransformationFactor(person.pseudonym, network.today, b"\x01" + bytes(31)))
        assert await connection.ask(request) == UserAnswer("closed", None)


async def test_deliveries_of_a_server_that_makes_them_up() -> None:
    async with small_central() as network:
        person, server = await subscribed_and_faked(network)
        good = wrap(Scalar.draw(network.env.randomness), b"made up", network.env.randomness)
        for wrapped, arrives in (
            (WrappedMessage(OUTSIDE, good.masked, good.payload), False),
            (WrappedMessage(good.mask, OUTSIDE, good.payload), False),
            (good, True),
        ):
            server.answer = lambda request, wrapped=wrapped: [
                ServerDelivery(request.number, wrapped),
                ServerDelivery(request.number + 1000, wrapped),
                ServerAnswer(request.number, AttachAnswer(bytes(16))),
                ServerAnswer(request.number + 7, AttachAnswer(bytes(16))),
                Detach(request.number + 1000),
            ]
            connection = await network.connect(network.deliveries)
            frame = await connection.ask(request_proofs.attach(person.pseudonym, person.secret))
            if frame is not None:
                frame = await connection.hear(30.0)
            assert (frame is not None) == arrives
        assert network.deliveries.count("server_faults") == 2
        await connection.say(request_proofs.acknowledge(person.secret, bytes(16), 1))
        await until(lambda: len(server.acknowledged) == 1)


async def test_a_server_that_sends_more_than_the_window_loses_the_attachment() -> None:
    async with small_central() as network:
        person, server = await subscribed_and_faked(network)
        large = wrap(person.key, bytes(250_000), network.env.randomness)
        server.answer = lambda request: [
            ServerAnswer(request.number, AttachAnswer(bytes(16))),
            *[ServerDelivery(request.number, large)] * 40,
        ]
        connection = await network.connect(network.deliveries)
        await person.attach(connection)
        daemon = network.deliveries.daemon
        await until(lambda: daemon.status()["attached"] == 0, 300.0)
        assert daemon._users.held.total == 0
        assert (await network.pong(network.deliveries)).is_open


async def test_deliveries_before_an_attachment_that_is_refused_hold_no_room() -> None:
    async with small_central() as network:
        person, server = await subscribed_and_faked(network)
        large = wrap(person.key, bytes(250_000), network.env.randomness)
        server.answer = lambda request: [
            ServerDelivery(request.number, large),
            ServerAnswer(request.number, UserAnswer("quota", None)),
        ]
        connection = await network.connect(network.deliveries)
        attach = request_proofs.attach(person.pseudonym, person.secret)
        assert await connection.ask(attach) == UserAnswer("quota", None)
        assert network.deliveries.daemon._users.held.total == 0
        server.answer = lambda request: [ServerDelivery(request.number, large)]
        await connection.say(attach)
        await trio.sleep(1)
        assert network.deliveries.daemon._users.held.total > 0
        await connection.close()
        await until(lambda: network.deliveries.daemon.status()["connections"] == 0, 300.0)
        assert network.deliveries.daemon._users.held.total == 0


async def test_a_server_that_says_nothing_any_more_is_left() -> None:
    async with small_central() as network:
        server = await faked(network)
        connection = await network.connect(network.publications)
        await connection.say(network.person("publish").introduce())
        assert await connection.hear(100.0) == UserAnswer("closed", None)
        for channel in server.channels:
            await channel.aclose()
        await until(lambda: network.publications.daemon.link_state == "open", 60.0)


async def test_bytes_from_the_server_that_are_no_frame_end_the_link() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        server = await faked(network)
        await until(lambda: ear.closed)
        await server.channels[-1].send(Ping())
        await server.channels[-2].send(Ping())
        await until(lambda: network.count("server_faults") == 2)
        await network.linked()
