"""A world around a server's deliveries: links, users and a spool, moved by numbers from a script."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing

from hushcast_central.counters import SERVER_COUNTERS
from hushcast_central.server.deliveries import WINDOW, Deliveries, ProxyLink
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import (
    AttachAnswer,
    DeliveriesAcknowledged,
    Detach,
    ServerAnswer,
    ServerDelivery,
)
from hushcast_protocol.central.introduction import PseudonymSecret
from hushcast_protocol.central.pseudonym_register import hop_of
from hushcast_protocol.central.rerouting import WrappedMessage
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import MAX_BODY, TRAIL_SIZE, Message
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

SIZES = (10, 10, 1000, MAX_BODY)


class PlainSealing:
    """Shows what it is told to hide: which message a delivery is, and that it is another each time."""

    def __init__(self) -> None:
        self.count = 0

    def delivery(self, message: Message) -> WrappedMessage:
        self.count += 1
        return WrappedMessage(message.id, bytes(32), self.count.to_bytes(8, "big") + message.body[:16])


class HeldWriter:
    """Writes when the script says so."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.entries: deque[Any] = deque()
        self.post = self.post_later = self.entries.append


@dataclass
class Talk:
    """What a user heard in one attachment."""

    user: int
    chain: bytes
    heard: list[tuple[bytes, bytes]] = field(default_factory=list)  # ids, and the chain after each
    over: bool = False


class World:
    def __init__(self, pick: Callable[[int], int], nursery: trio.Nursery) -> None:
        """`pick(n)` chooses from 0 to n - 1."""
        self.pick = pick
        self.store = MemoryStore()
        self.spool = Spool(self.store)
        self.counters = Counters(SERVER_COUNTERS)
        env = simulated_environment(1)
        context = Context(env, self.store, self.counters, NoTracer(), nursery.start_soon)
        self.deliveries = Deliveries(self.spool, PlainSealing(), context)  # type: ignore[arg-type]
        nursery.start_soon(self.deliveries.run)
        self.secrets = [PseudonymSecret(bytes([number]) * 32) for number in range(3)]
        self.names = [digest(Domain.PSEUDONYM, secret.reveal()) for secret in self.secrets]
        self.waiting: list[set[bytes]] = [set() for _ in self.names]
        self.heard: list[set[bytes]] = [set() for _ in self.names]
        self.links = [self.link(), self.link()]
        self.talks: dict[tuple[int, int], Talk] = {}  # by link and number
        self.begun: dict[tuple[int, int], int] = {}  # whose answer has not come
        self.numbers = self.count = 0

    @staticmethod
    def link() -> ProxyLink:
        return ProxyLink(HeldWriter())  # type: ignore[arg-type]

    # What happens.

    async def publish(self) -> None:
        self.count += 1
        size = SIZES[self.pick(len(SIZES))]
        name = digest(Domain.MESSAGE, self.count.to_bytes(8, "big"))
        message = Message(name, self.pick(2), (bytes(16),), bytes(TRAIL_SIZE), bytes(size))
        users = [user for user in range(len(self.names)) if self.pick(3)]
        for user in users:
            self.waiting[user].add(name)
        self.deliveries.enqueue(
            self.spool.put([HopMessage(hop_of(self.names[user]), message) for user in users])
        )

    async def attach(self, user: int | None = None) -> None:
        user = self.pick(len(self.names)) if user is None else user
        which = self.pick(len(self.links))
        self.numbers += 1
        self.begun[which, self.numbers] = user
        self.deliveries.attach(self.links[which], self.numbers, self.names[user], self.secrets[user])

    async def write(self, most: int = 6) -> None:
        which = self.pick(len(self.links))
        entries = self.links[which].writer.entries  # type: ignore[attr-defined]
        for _ in range(min(len(entries), 1 + self.pick(most))):
            entry = entries.popleft()
            frame = entry() if callable(entry) else entry
            if isinstance(frame, ServerAnswer):
                assert isinstance(frame.what, AttachAnswer)
                self.talks[which, frame.number] = Talk(self.begun.pop((which, frame.number)), frame.what.salt)
            elif isinstance(frame, ServerDelivery):
                talk = self.talks[which, frame.attachment]
                assert not talk.over, "a delivery after the end"
                assert frame.wrapped.mask not in [name for name, _ in talk.heard], "twice in one attachment"
                talk.chain = request_proofs.followed(talk.chain, frame.wrapped)
                talk.heard.append((frame.wrapped.mask, talk.chain))
            elif isinstance(frame, Detach) and (which, frame.attachment) in self.talks:
                self.talks[which, frame.attachment].over = True

    async def acknowledge(self) -> None:
        """Mostly what was heard last, now and then something earlier."""
        open_ones = [key for key, talk in self.talks.items() if talk.heard and not talk.over]
        if open_ones:
            self._acknowledge(*open_ones[self.pick(len(open_ones))])

    def _acknowledge(self, which: int, number: int) -> None:
        talk = self.talks[which, number]
        last = len(talk.heard) - (self.pick(3) if self.pick(4) == 0 else 0)
        if last < 1:
            return
        before = self.spool_of(talk.user)
        frame = request_proofs.acknowledge(self.secrets[talk.user], talk.heard[last - 1][1], last)
        self.deliveries.acknowledged(
            self.links[which], DeliveriesAcknowledged(number, frame.number, frame.proof)
        )
        if self.spool_of(talk.user) != before:
            gone = {name for name, _ in talk.heard[:last]}
            self.heard[talk.user] |= gone
            self.waiting[talk.user] -= gone

    async def lie(self) -> None:
        """Acknowledge what was not heard, or by somebody else: it ends that attachment, and no more."""
        which, number = self.pick(len(self.links)), 1 + self.pick(self.numbers + 1)
        before = len(self.spool)
        said = DeliveriesAcknowledged(number, 1 + self.pick(5), bytes(16))
        attachment = self.links[which].attachments.get(number)
        was_new = attachment is not None and said.number > attachment._acknowledged
        self.deliveries.acknowledged(self.links[which], said)
        assert len(self.spool) == before
        assert not was_new or number not in self.links[which].attachments

    async def detach(self) -> None:
        which, number = self.pick(len(self.links)), 1 + self.pick(self.numbers + 1)
        self.deliveries.detach(self.links[which], number)
        if (talk := self.talks.get((which, number))) is not None:
            talk.over = True

    async def break_link(self) -> None:
        which = self.pick(len(self.links))
        link = self.links[which]
        link.writer.scope.cancel()
        self.deliveries.left(link)
        assert not link.attachments
        self.deliveries.attach(link, 10**6, self.names[0], self.secrets[0])
        assert not link.attachments, "nobody is attached by a link that has ended"
        self.links[which] = self.link()
        for (held, _), talk in self.talks.items():
            talk.over |= held == which
        self.begun = {key: user for key, user in self.begun.items() if key[0] != which}

    async def forget(self) -> None:
        user = self.pick(len(self.names))
        self.deliveries.forget(self.names[user])
        await self.settle()
        self.waiting[user].clear()

    async def pass_time(self) -> None:
        await trio.sleep(self.pick(120))

    async def settle(self) -> None:
        """Let all be read and cleared that the last move has tasks for, however much waits."""
        await trio.testing.wait_all_tasks_blocked()

    # What must be true whatever happened.

    def spool_of(self, user: int) -> set[bytes]:
        hop = hop_of(self.names[user])
        return {key for key in self.spool._held if key.startswith(hop)}

    def check(self) -> None:
        for user, waiting in enumerate(self.waiting):
            assert len(self.spool_of(user)) == len(waiting), "what was not acknowledged waits, and no more"
        attached = {
            id(attachment): attachment for link in self.links for attachment in link.attachments.values()
        }
        machines = self.deliveries._machines
        assert {id(machine.links[-1]) for machine in machines.values()} == set(attached)
        for attachment in attached.values():
            assert machines[attachment.pseudonym].links == (attachment,)
            assert attachment.in_flight <= WINDOW + MAX_BODY
            assert len(attachment.unwritten) + len(attachment._chains) == len(attachment.unacknowledged)

    async def settle_down(self, each: Callable[[], object]) -> None:
        """From now on nothing goes wrong: everybody hears all that waits. `each` is called at every turn."""
        self.pick = lambda most: 0
        await self.break_link()
        for user in range(len(self.names)):
            await self.attach(user)
        for _ in range(2000):
            each()
            await self.write(1)
            for key, talk in list(self.talks.items()):
                if talk.heard and not talk.over:
                    self._acknowledge(*key)
            await self.settle()
            self.check()
            if not any(self.waiting):
                return
        raise AssertionError("something was never delivered")

    def moves(self) -> list[Callable[[], Any]]:
        often = [self.publish, self.write, self.write, self.acknowledge, self.attach]
        return 3 * often + [self.lie, self.detach, self.break_link, self.forget, self.pass_time]


async def play(pick: Callable[[int], int], more: Callable[[], bool]) -> None:
    """Let things happen for as long as the script has `more`, and then come to rest."""
    async with trio.open_nursery() as nursery:
        world = World(pick, nursery)
        while more():
            await world.moves()[pick(len(world.moves()))]()
            await world.settle()
            world.check()
        await world.settle_down(more)
        nursery.cancel_scope.cancel()
