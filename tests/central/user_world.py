"""A user's end of the central system against a server and proxies that together say whatever they like.

Moves come from outside: what is asked is answered as it should be, or not; deliveries are true, altered,
repeated or made up. Whatever they do, the user believes of the server what it proved, shows what was sealed
for it, and meets no error of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from core_examples import stream

from hushcast_central.user.user_links import ProxyConversation, UserLinks
from hushcast_node.carrier_adapter import AdapterContext
from hushcast_node.carrier_parts import CentralParts
from hushcast_node.central_adapter import CentralAdapter
from hushcast_node.counters import CENTRAL_NODE
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.central import frames, request_proofs
from hushcast_protocol.central.introduction import SealingKey, opened
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_protocol.central.rerouting import WrappedMessage, encrypted, wrap
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.carriers.carrier import Tokens
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

Choose = Callable[[int], int]
TRUNK, ENTRY = b"t" * 16, b"e" * 16
MAX_CONVERSATIONS = 40
SEALING = SealingKey.draw(stream(1))
LIES = ("accepted",) * 8  # what there is to gain by
VERDICTS = (*LIES, "form", "proof", "day", "quota", "stamp", "unknown", "taken", "closed")


class Wanted:
    """An interest whose messages nobody opens."""

    name = b"w" * 16
    interest = Interest(parse_topic("topic"), parse_where("", ()))
    terms = None
    since = None

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    async def tokens(self, day: int) -> Tokens:
        return Tokens(TRUNK, (ENTRY,))

    def knows(self, message: bytes) -> bool:
        return message in self.taken

    async def take(self, messages: list[Message]) -> None:
        self.taken += [message.id for message in messages]

    def lose(self, count: int) -> None:
        raise AssertionError(count)

    def miss(self, message_ids: list[bytes]) -> None:
        raise AssertionError(message_ids)

    def refuse(self, reason: str) -> None:
        raise AssertionError(reason)


class Receipts:
    """What the user believes that the server has."""

    def __init__(self) -> None:
        self.count = 0

    def note_try(self, taker: bytes) -> None: ...

    def note_receipt(self, taker: bytes) -> None:
        self.count += 1

    def note_failure(self, reason: str) -> None: ...


class Liars:
    """Server and proxies; they know all that the user sealed to the server."""

    def __init__(self, choose: Choose, has_more: Callable[[], bool], day: int) -> None:
        self.choose = choose
        self.has_more = has_more
        self.day = day
        self.known: dict[bytes, tuple[Scalar, Any]] = {}
        """Key and secret, by pseudonym."""
        self.granted: set[tuple[bytes, bytes]] = set()
        self.receipts = 0
        self.sealed: set[bytes] = set()
        """Ids of messages that the user may show."""
        self.conversations = 0
        self._random = stream(7)

    def learn(self, frame: frames.Introduce) -> None:
        found = opened(SEALING, frame.sealed)
        key = found.blinded.times(Scalar(frame.blinding).inverse())
        self.known[found.pseudonym] = key, found.secret

    def honest(self, asked: Any) -> Any:
        """Return what an honest network answers."""
        if isinstance(asked, frames.Introduce):
            return frames.UserAnswer("accepted", None)
        if isinstance(asked, frames.Ping):
            return frames.Pong(self.choose(4), True)
        if asked.pseudonym not in self.known:
            return frames.UserAnswer("unknown", None)
        if isinstance(asked, frames.Attach):
            return frames.AttachAnswer(bytes(16))
        secret = self.known[asked.pseudonym][1]
        if isinstance(asked, frames.Subscribe):
            self.granted |= {(asked.pseudonym, token) for token in asked.tokens}
        self.receipts += isinstance(asked, frames.Publish)
        return request_proofs.done(secret, asked, "accepted")

    def delivery(self, pseudonym: bytes) -> WrappedMessage:
        """Seal a message that is as it should be, or is not."""
        key = self.known[pseudonym][0]
        kind = self.choose(6)
        body = bytes([self.choose(256)]) * (HEADER + PADDED_SIZES[0] + SEAL)
        day = self.day + (kind == 1)
        name = bytes(32) if kind == 2 else message_id(day, body)
        token = ENTRY if kind == 3 else TRUNK
        if kind in (0, 5):
            self.sealed.add(name)
        inside = encode(Message(name, day, (token,), bytes(TRAIL_SIZE), body))
        return wrap(Scalar.draw(self._random) if kind == 4 else key, inside, self._random)


class Channel:
    """What one conversation goes over."""

    def __init__(self, liars: Liars) -> None:
        self._liars = liars
        self._asked: list[Any] = []
        self._pseudonym: bytes | None = None
        self._said: list[WrappedMessage] = []

    async def send(self, *sent: Any) -> None:
        await trio.lowlevel.checkpoint()
        for frame in sent:
            if isinstance(frame, frames.Introduce):
                self._liars.learn(frame)
            if isinstance(frame, frames.AcknowledgeDeliveries):
                assert frame.number <= len(self._said), "what did not come is acknowledged"
            else:
                self._asked.append(frame)

    async def receive(self) -> list[Any]:
        liars = self._liars
        await trio.sleep(0.1)
        if not liars.has_more():
            raise TransportError("it is over")
        move = liars.choose(16)
        if move < 8 and self._asked:
            asked = self._asked.pop(0)
            answer = liars.honest(asked)
            if isinstance(answer, frames.AttachAnswer):
                self._pseudonym = asked.pseudonym
            return [answer]
        if move == 8:
            return [frames.UserAnswer(VERDICTS[liars.choose(len(VERDICTS))], None)]
        if move == 9:
            return [frames.UserAnswer(VERDICTS[liars.choose(len(VERDICTS))], bytes([liars.choose(256)]) * 16)]
        if move in (10, 11, 12) and self._pseudonym in liars.known:
            assert self._pseudonym is not None
            again = self._said and liars.choose(3) == 0
            wrapped = self._said[0] if again else liars.delivery(self._pseudonym)
            self._said.append(wrapped)
            return [frames.Delivery(wrapped)]
        if move == 13:
            return []
        if move == 14:
            raise DecodeError("a frame does not decode")
        return [frames.Pong(1, liars.choose(4) > 0), frames.AttachAnswer(bytes(16))][
            : 1 + (liars.choose(8) == 0)
        ]

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class LyingLinks(UserLinks):
    """Links that lead to the liars."""

    liars: Liars

    @asynccontextmanager
    async def open(self, proxy: Proxy) -> AsyncIterator[ProxyConversation]:
        self.liars.conversations += 1
        if self.liars.conversations > MAX_CONVERSATIONS or not self.liars.has_more():
            raise TransportError("nobody is there any more")
        channel: Any = Channel(self.liars)
        yield ProxyConversation(channel, proxy, self._heard, self._wire)


async def play(choose: Choose, has_more: Callable[[], bool]) -> None:
    """Subscribe and publish while there are moves; check what the user believes at the end."""
    env = simulated_environment("user world", 1_000_000.0)
    proxies = [
        Proxy(Seed(bytes([number]) * 32).public(), memory_address(bytes([number]) * 32), role)  # type: ignore[arg-type]
        for number, role in enumerate(("publications", "deliveries", "deliveries"), 1)
    ]
    network = CentralNetwork(
        "n", ("hardened", "paper")[choose(2)], 3600, Seed(bytes(32)).public(), SEALING.public()
    )
    liars = Liars(choose, has_more, network.calendar.day(env.now()))
    store, counters, wanted, receipts = MemoryStore(), Counters(CENTRAL_NODE), Wanted(), Receipts()
    wires = MemoryNetwork(lambda: 0.1, call_at())
    around = AdapterContext(env, DaemonClock(env, network.calendar), wires.transport(), store, counters)
    side = CentralAdapter(CentralParts(network, CENTRAL_PROFILES[network.profile], proxies), around)
    side._links.__class__ = LyingLinks
    side._links.liars = liars  # type: ignore[attr-defined]
    for role in ("publications", "deliveries"):
        side._heard.note(role, True)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        carrier = await side.start(Context(env, store, counters, NoTracer(), nursery.start_soon))
        await carrier.resume([])
        route = carrier.keep(wanted)
        while has_more() and liars.conversations <= MAX_CONVERSATIONS:
            body = bytes(HEADER + PADDED_SIZES[0] + SEAL)
            message = Message(message_id(liars.day, body), liars.day, (TRUNK, ENTRY), bytes(TRAIL_SIZE), body)
            await carrier.hand_over(message, receipts)
            await trio.sleep(60)
        await trio.sleep(10)
        for held in side.routes.held:
            for pseudonym in held.receiver.pseudonyms.values():
                key = pseudonym.credentials.key
                assert {(pseudonym.id, encrypted(key, token)) for token in pseudonym.held} <= liars.granted
        assert receipts.count <= liars.receipts
        assert set(wanted.taken) <= liars.sealed
        assert not route.ready.is_set() or liars.granted
        assert counters["internal_errors"] == 0
        nursery.cancel_scope.cancel()
