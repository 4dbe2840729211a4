"""A central network over `memory`, whose server and proxies can be stopped and held up, and its users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import trio
from gated_transport import Wires
from small_network import BEGIN, EPOCH_SECONDS, LONGEST_WAY, SHORTEST_WAY, Process, until
from talk import Talk

from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    MAX_CENTRAL_FRAME,
    AttachAnswer,
    Delivery,
    Introduce,
    Ping,
    Pong,
    Publish,
    Subscribe,
    UserAnswer,
    WithdrawTokens,
    decode_from_server,
    decode_to_user,
)
from hushcast_protocol.central.introduction import PseudonymSecret, SealingKey, introduction, pseudonym_of
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_protocol.central.rerouting import MAX_INSIDE, WrappedMessage, encrypted, unwrap, wrap
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import open_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

TOPIC = b"topic one's token"
OTHER = b"topic two's token"
decode_message = decoder(Message, "message", MAX_INSIDE)


class Member(Process):
    """The server or a proxy; its keys and store outlive it."""

    network: SmallCentral

    def __init__(self, network: SmallCentral, name: str, meanings: dict[str, str]) -> None:
        super().__init__(network, name)
        draw = network.environment(f"{name} keys").randomness
        self.seed, self.service = Seed.draw(draw), Seed.draw(draw)
        self.store: Any = MemoryStore()
        self.meanings = meanings
        self.counters: list[Counters] = []
        self.daemon: Any = None
        self.is_vouched = True

    @property
    def address(self) -> Address:
        """Where it is reached; over sockets that is known once it was started."""
        listens = self.daemon is not None and self.daemon.listener is not None
        return self.daemon.address if listens else memory_address(self.service.public())

    def count(self, name: str) -> int:
        """What a counter says over all lives."""
        return sum(counters[name] for counters in self.counters)

    async def start(self) -> None:
        self.counters.append(Counters(self.meanings))
        await super().start()

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        self.daemon = self.made(transport, env)
        if self.is_vouched:
            # As Tor's consensus vouches for the time; there is no roster that would.
            self.daemon.clock.witness((env.now() - 3600, env.now() + 3600))
        await self.daemon.run(task_status=task_status)

    def made(self, transport: Transport, env: Environment) -> Any:
        """Return the daemon of the life that begins."""
        raise NotImplementedError


class ServerMember(Member):
    def __init__(self, network: SmallCentral) -> None:
        super().__init__(network, "server", SERVER_COUNTERS)
        draw = network.environment("group").randomness
        self.wanted: int | None = None
        self.keys = ServerKeys(self.seed, SealingKey.draw(draw), Scalar.draw(draw))

    def made(self, transport: Transport, env: Environment) -> CentralServer:
        network = self.network
        return CentralServer(
            ServerParts(
                network.net,
                self.keys,
                self.service,
                network.proxies,
                CENTRAL_PROFILES[network.net.profile],
                env,
                transport,
                self.store,
                self.counters[-1],
                network.tracer,
                self.wanted,
                network.keeping,
            )
        )


class ProxyMember(Member):
    def __init__(self, network: SmallCentral, name: str, role: Any) -> None:
        super().__init__(network, name, PROXY_COUNTERS)
        self.role = role

    @property
    def listed(self) -> Proxy:
        return Proxy(self.seed.public(), self.address, self.role)

    def made(self, transport: Transport, env: Environment) -> CentralProxy:
        network = self.network
        return CentralProxy(
            ProxyParts(
                network.net,
                self.seed,
                self.service,
                self.role,
                network.server_address,
                env,
                transport,
                self.store,
                self.counters[-1],
                network.tracer,
            )
        )


@dataclass
class Person:
    """A user's side of one pseudonym: its keys, and what it says."""

    network: SmallCentral
    use: Any
    day: int
    key: Scalar
    secret: PseudonymSecret
    salt: bytes = b""
    heard: list[Message] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    @property
    def pseudonym(self) -> bytes:
        return pseudonym_of(self.secret)

    def introduce(self, blinding: Scalar | None = None, stamp: Any = None) -> Introduce:
        blinding = blinding or Scalar.draw(self.network.env.randomness)
        sealing_key = self.network.net.sealing_key
        sealed = introduction(sealing_key, self.use, self.day, self.key, blinding, self.secret)
        return Introduce(blinding.reveal(), sealed, stamp)

    def tokens(self, *tokens: bytes) -> tuple[bytes, ...]:
        return tuple(encrypted(self.key, token) for token in tokens)

    def subscribe(self, *tokens: bytes, serial: int | None = None) -> Subscribe:
        number = next(self.numbers) if serial is None else serial
        return request_proofs.subscribe(self.pseudonym, self.secret, number, self.tokens(*tokens))

    def withdraw(self, *tokens: bytes, serial: int | None = None) -> WithdrawTokens:
        number = next(self.numbers) if serial is None else serial
        return request_proofs.withdraw(self.pseudonym, self.secret, number, self.tokens(*tokens))

    def publish(self, message: Message, *tokens: bytes) -> Publish:
        wrapped = wrap(self.key, encode(message), self.network.env.randomness)
        return request_proofs.publish(
            self.pseudonym, self.secret, self.tokens(*(tokens or (TOPIC,))), wrapped
        )

    def opened(self, delivery: Delivery) -> Message:
        return decode_message(unwrap(self.key, delivery.wrapped))

    async def introduced(self, proxy: ProxyMember) -> Talk:
        """Connect, and introduce the pseudonym."""
        connection = await self.network.connect(proxy)
        assert await connection.ask(self.introduce()) == UserAnswer("accepted", None)
        return connection

    async def attach(self, connection: Talk) -> AttachAnswer:
        answer = await connection.ask(request_proofs.attach(self.pseudonym, self.secret))
        assert isinstance(answer, AttachAnswer), answer
        self.salt = answer.salt
        return answer


class Ear:
    """A subscriber that listens at one attachment, and acknowledges as it is told."""

    def __init__(self, person: Person, connection: Talk, acknowledges: bool = True) -> None:
        self.person = person
        self.connection = connection
        self.acknowledges = acknowledges
        self.wrapped: list[WrappedMessage] = []
        self.chain = person.salt
        self.closed = False
        self.scope = trio.CancelScope()
        person.network.nursery.start_soon(self._listen)

    async def _listen(self) -> None:
        with self.scope, suppress(TransportError):
            while (frame := await self.connection.hear(within=100_000.0)) is not None:
                assert isinstance(frame, Delivery), frame
                self.wrapped.append(frame.wrapped)
                self.chain = request_proofs.followed(self.chain, frame.wrapped)
                self.person.heard.append(self.person.opened(frame))
                if self.acknowledges:
                    await self.acknowledge()
        self.closed = True

    async def acknowledge(self) -> None:
        await self.connection.say(
            request_proofs.acknowledge(self.person.secret, self.chain, len(self.wrapped))
        )

    async def leave(self) -> None:
        self.scope.cancel()
        await self.connection.close()


class SmallCentral:
    """The network, and what tests ask of it."""

    def __init__(self, nursery: trio.Nursery, profile: str, seed: int, tracer: Tracer | None) -> None:
        self.nursery = nursery
        self.seed = seed
        self.tracer = tracer or NoTracer()
        self.env = self.environment("network")
        self.wires: Wires = MemoryNetwork(lambda: self.env.uniform(SHORTEST_WAY, LONGEST_WAY), call_at())
        self.server = ServerMember(self)
        self.publications = ProxyMember(self, "publications", "publications")
        self.deliveries = ProxyMember(self, "deliveries", "deliveries")
        self.members: list[Member] = [self.server, self.publications, self.deliveries]
        keys = self.server.keys
        self.net = CentralNetwork("small", profile, EPOCH_SECONDS, keys.seed.public(), keys.sealing.public())
        self.calendar = self.net.calendar
        self.keeping = KeepingSection() if CENTRAL_PROFILES[profile].wraps_anew else NOTHING
        self.count_of_messages = 0

    @property
    def proxies(self) -> tuple[Proxy, ...]:
        return tuple(member.listed for member in self.members if isinstance(member, ProxyMember))

    def add(self, name: str, role: Any) -> ProxyMember:
        """Make another proxy, which the server lists when it starts next."""
        member = ProxyMember(self, name, role)
        self.members.append(member)
        return member

    def environment(self, name: str) -> Environment:
        return replace(simulated_environment(f"{self.seed} {name}", BEGIN))

    @property
    def now(self) -> float:
        return self.env.now()

    @property
    def today(self) -> int:
        return self.calendar.day(self.now)

    async def up(self) -> None:
        for member in self.members:
            await member.start()
            self.server_address = self.server.address
        await self.linked()

    async def linked(self) -> None:
        """Wait until every proxy that is up has its link."""
        up = [member for member in self.members if isinstance(member, ProxyMember) and member.is_up]
        await until(lambda: all(member.daemon.link_state == "open" for member in up), 120.0, "all are linked")

    def count(self, name: str) -> int:
        return sum(member.count(name) for member in self.members if name in member.meanings)

    async def connect(self, proxy: ProxyMember, us: Seed | None = None) -> Talk:
        listed = proxy.listed
        return await self.reach(listed.key, listed.address, us)

    async def reach(
        self, key: bytes, address: Any, us: Seed | None = None, decode: Any = decode_to_user
    ) -> Talk:
        """Connect to anybody, under a name or none."""
        link = Link.initiate(self.net.id, key, self.env.randomness, MAX_CENTRAL_FRAME, us)
        transport = self.wires.transport()
        channel, _ = await open_channel(transport, address, self.env.isolation(), link, decode)
        return Talk(channel)

    def person(self, use: str, day: int | None = None) -> Person:
        draw = self.env.randomness
        day = self.today if day is None else day
        return Person(self, use, day, Scalar.draw(draw), PseudonymSecret.draw(draw))

    def message(self, text: bytes = b"", day: int | None = None, size: int = 0) -> Message:
        """Make a message; its body is what nobody opens here."""
        self.count_of_messages += 1
        head = self.count_of_messages.to_bytes(4, "big") + text
        body = head.ljust(HEADER + PADDED_SIZES[size] + SEAL, b".")
        day = self.today if day is None else day
        return Message(message_id(day, body), day, (TOPIC[:16],), bytes(TRAIL_SIZE), body)

    async def subscriber(self, *tokens: bytes, acknowledges: bool = True) -> Ear:
        """Introduce, subscribe and attach somebody."""
        person = self.person("subscribe")
        connection = await person.introduced(self.deliveries)
        await self.accepted(person, connection, person.subscribe(*(tokens or (TOPIC,))))
        await person.attach(connection)
        return Ear(person, connection, acknowledges)

    async def attached(self, person: Person, acknowledges: bool = True) -> Ear:
        """Attach somebody who subscribed before."""
        connection = await self.connect(self.deliveries)
        await person.attach(connection)
        return Ear(person, connection, acknowledges)

    async def accepted(self, person: Person, connection: Talk, request: Any) -> None:
        answer = await connection.ask(request)
        assert request_proofs.is_from_server(person.secret, request, answer), answer
        assert answer.verdict == "accepted", answer

    async def publish(self, message: Message, *tokens: bytes) -> Any:
        """Publish as hardened: a pseudonym for it alone, all in one write; return the verdict."""
        person = self.person("publish")
        connection = await self.connect(self.publications)
        request = person.publish(message, *tokens)
        await connection.say(person.introduce(), request)
        introduced = await connection.hear()
        answer = await connection.hear()
        await connection.close()
        if introduced is None or answer is None:
            return None
        if introduced != UserAnswer("accepted", None):
            return introduced.verdict
        assert answer.verdict != "accepted" or request_proofs.is_from_server(person.secret, request, answer)
        return answer.verdict

    async def published(self, *tokens: bytes, size: int = 0) -> Message:
        """Publish something new until there is a receipt."""
        message = self.message(size=size)
        for _ in range(120):
            if await self.publish(message, *tokens) == "accepted":
                return message
            await trio.sleep(1.0)
        raise AssertionError("nobody took a publication")

    async def as_proxy(self, proxy: ProxyMember) -> Talk:
        """Connect to the server as a proxy would."""
        address = memory_address(self.server.service.public())
        return await self.reach(self.net.server, address, proxy.seed, decode_from_server)

    def sign_of_life(self, is_open: bool = True, difficulty: int = 0) -> Pong:
        """Return what a proxy says that has heard the server."""
        return Pong(difficulty, is_open, self.server.daemon._wire.signed)

    async def pong(self, proxy: ProxyMember) -> Pong:
        connection = await self.connect(proxy)
        answer = await connection.ask(Ping())
        await connection.close()
        assert isinstance(answer, Pong)
        return answer


def hears(ear: Ear | Person, *messages: Message) -> Callable[[], bool]:
    """Return a condition: all messages were heard."""
    person = ear.person if isinstance(ear, Ear) else ear
    return lambda: {message.id for message in messages} <= {message.id for message in person.heard}


@asynccontextmanager
async def small_central(
    profile: str = "hardened", seed: int = 1, tracer: Tracer | None = None
) -> AsyncIterator[SmallCentral]:
    """A network that is up; at the end no member may have met an error of its own program."""
    async with trio.open_nursery() as nursery:
        network = SmallCentral(nursery, profile, seed, tracer)
        await network.up()
        yield network
        assert network.count("internal_errors") == 0
        nursery.cancel_scope.cancel()
