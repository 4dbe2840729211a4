"""Children: the links that brokers below and clients keep to this broker, and their requests over them."""

from __future__ import annotations

from typing import Protocol, cast

import trio

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.community.charter_listeners import CharterListeners
from hushcast_brokers.broker.downstream import ChildLink, Downstream
from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tasks import Tasks
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.brokers.frames import (
    Ack,
    Advertise,
    AskCharters,
    BrokerRequest,
    BrokerVerdict,
    FromBelow,
    HandUp,
    NewTree,
    Ping,
    Pong,
    RequestAnswer,
)
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.channel_writer import Writer

MAX_UNDER_WAY = 512  # requests of a child whose answers wait for a disk, or for somebody above
REQUESTS_A_SECOND, REQUESTS_AT_ONCE = 8.0, 1024.0  # of a client; each may change tables up to the root
# Of a broker: each item under layers costs one, 0.15 ms. At once: a whole table, and the questions for it.
MULTIPLICATIONS_A_SECOND, MULTIPLICATIONS_AT_ONCE = 1000.0, 262_144.0
_OF_A_QUESTION = 4
LET_GO_WITHIN = 5.0  # seconds in which somebody who is no child any more reads the tree that says so


class ChildService(Protocol):
    """Who takes the requests of a kind of child."""

    async def greeting(self, child: PublicKey, /) -> list[Wire]:
        """Say what is routed to a child, over a link that has just opened; `ParentHello` is the first."""

    async def take(self, child: PublicKey, frame: FromBelow, /) -> int:
        """Take a request; return the version of what it changes upward. Raises `Refusal` with a verdict."""

    async def factors(self, child: PublicKey, ask: AskFactors, /) -> Factors:
        """Answer a question for factors; raise `Refusal`, or `TransportError` where nobody can."""

    async def hand_up(self, child: PublicKey, message: Message, /) -> None:
        """Take what is handed up; durable on return. Raises `Refusal`."""


class Child:
    """A child's open link."""

    def __init__(
        self, key: PublicKey, is_client: bool, writer: Writer, tasks: Tasks, tree: int, now: float
    ) -> None:
        self.key = key
        self.is_client = is_client
        self.writer = writer
        self.tasks = tasks
        self.tree = tree
        """The version of the tree that it holds, as far as is known."""
        self.is_leaving = False
        self.serial = 0
        self.under_way = 0
        self.bucket = (
            TokenBucket(REQUESTS_A_SECOND, REQUESTS_AT_ONCE, now)
            if is_client
            else TokenBucket(MULTIPLICATIONS_A_SECOND, MULTIPLICATIONS_AT_ONCE, now)
        )


class Children:
    """The open links of one broker's children."""

    def __init__(
        self,
        downstream: Downstream,
        advertising: Advertising,
        tree: HeldTree,
        charters: CharterListeners | None,
        context: Context,
    ) -> None:
        """`charters` tells those of communities, in networks that have any."""
        self._downstream = downstream
        self._advertising = advertising
        self._tree = tree
        self._charters = charters
        self._store = context.store
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._links: dict[PublicKey, Child] = {}  # the newest of each
        self._greeted: dict[PublicKey, Channel[FromBelow]] = {}  # the newest of each that is no link yet

    @property
    def keys(self) -> set[PublicKey]:
        """The keys of children whose link is open."""
        return set(self._links)

    def count(self, is_client: bool) -> int:
        """Return how many links of clients, or of brokers, are open."""
        return sum(child.is_client is is_client for child in self._links.values())

    def let_go(self, key: PublicKey) -> None:
        """End the link of somebody who is no child any more, after a moment in which the tree tells it so."""
        if (child := self._links.get(key)) is not None and not child.is_leaving:
            child.is_leaving = True
            child.writer.scope.deadline = trio.current_time() + LET_GO_WITHIN

    def tell_tree(self) -> None:
        """Say the tree that is held to all who have an older one."""
        tree = self._tree.newest
        for child in self._links.values():
            if tree is not None and tree.version > child.tree:
                child.tree = tree.version
                child.writer.post(NewTree(tree.signed))

    async def serve(
        self, channel: Channel[FromBelow], key: PublicKey, is_client: bool, served: ChildService
    ) -> None:
        """Serve a child's link until it ends; it knows the tree that is held now. Raises a `PeerError`."""
        tree = self._tree.view.epoch
        self._downstream.disconnect(key)  # what is being taken over a link of before is taken no further
        self._greeted[key] = channel  # one of before that is greeted yet is no link any more
        try:
            greeting = await served.greeting(key)
            is_newest = self._greeted.get(key) is channel
        finally:
            if self._greeted.get(key) is channel:
                del self._greeted[key]
        if not is_newest or self._tree.view.epoch != tree:
            return  # it may be no child any more: it opens another link, and hears of the tree
        writer = Writer(channel, self._spawn)
        tasks = Tasks(self._spawn)
        child = Child(key, is_client, writer, tasks, tree, self._env.elapsed())
        for frame in greeting:
            writer.post(frame)
        link = self._downstream.begin(key, writer, is_client)
        self._links[key] = child
        try:
            with writer.scope as scope:
                scope.deadline = trio.current_time() + IDLE
                while batch := await channel.receive():
                    if not child.is_leaving:
                        scope.deadline = trio.current_time() + IDLE
                    for frame in batch:
                        await self._take(child, link, frame, served)
        finally:
            writer.scope.cancel()
            tasks.end()
            self._downstream.end(link)
            if self._charters is not None:
                self._charters.end(writer)
            if self._links.get(key) is child:
                del self._links[key]

    async def _take(self, child: Child, link: ChildLink, frame: FromBelow, served: ChildService) -> None:
        if isinstance(frame, Ack):
            self._downstream.acknowledged(link, frame.number)
        elif child.is_leaving:
            pass
        elif isinstance(frame, Ping):
            child.writer.post(Pong())
        elif isinstance(frame, NewTree):
            said = await self._tree.take(frame.tree)
            child.tree = max(child.tree, said)
        elif isinstance(frame, AskCharters) and self._charters is not None:
            self._charters.begin(child.writer, frame)
        elif isinstance(frame, BrokerRequest):
            await self._request(child, frame, served)
        else:
            raise DecodeError("a child says what children do not say")

    async def _request(self, child: Child, frame: BrokerRequest, served: ChildService) -> None:
        if wait := child.bucket.owe(self._env.elapsed(), 1.0 if child.is_client else _work(frame)):
            await trio.sleep(wait)
        # What has come already goes on though a newer link has begun, which says how all stands without it.
        await trio.lowlevel.checkpoint_if_cancelled()
        if child.is_leaving:
            return
        if frame.serial <= child.serial:
            raise DecodeError("a request's serial does not grow")
        child.serial = frame.serial
        try:
            if child.under_way >= MAX_UNDER_WAY:
                raise Refusal("quota")
            is_later = isinstance(frame, AskFactors | HandUp)
            version = 0 if is_later else await served.take(child.key, frame)
        except Refusal as refusal:
            self._refuse(child, frame.serial, refusal)
            return
        child.under_way += 1
        if isinstance(frame, AskFactors):
            child.tasks.start(self._answer, child, frame, served)
        elif isinstance(frame, HandUp):
            child.tasks.start(self._hand_up, child, frame, served)
        else:
            child.tasks.start(self._confirm, child, frame.serial, version)

    async def _confirm(self, child: Child, serial: int, version: int) -> None:
        """Answer a request once it is durable, and confirmed above."""
        try:
            await self._store.write()
            await self._advertising.confirmed(version)
            child.writer.post(RequestAnswer(serial, "accepted"))
        except Refusal as refusal:
            self._refuse(child, serial, refusal)
        finally:
            child.under_way -= 1

    async def _hand_up(self, child: Child, frame: HandUp, served: ChildService) -> None:
        """Answer once what was handed up is durable here, or refused: nobody hears what those above find."""
        try:
            await served.hand_up(child.key, frame.message)
            child.writer.post(RequestAnswer(frame.serial, "accepted"))
        except Refusal as refusal:
            self._refuse(child, frame.serial, refusal)
        finally:
            child.under_way -= 1

    async def _answer(self, child: Child, ask: AskFactors, served: ChildService) -> None:
        """Answer a question for factors, as soon as somebody above has; who hears nothing asks again."""
        try:
            child.writer.post(await served.factors(child.key, ask))
        except Refusal as refusal:
            self._refuse(child, ask.serial, refusal)
        except TransportError:
            self._refuse(child, ask.serial, Refusal("quota"))
        finally:
            child.under_way -= 1

    def _refuse(self, child: Child, serial: int, refusal: Refusal) -> None:
        self._counters.add(f"refused_{refusal.reason}")
        child.writer.post(RequestAnswer(serial, cast(BrokerVerdict, refusal.reason)))


def _work(frame: BrokerRequest) -> float:
    """Return how many multiplications a broker's request costs."""
    if isinstance(frame, Advertise):
        return float(sum(isinstance(item, LayeredWord) for item in frame.add))
    if isinstance(frame, HandUp):
        return float(len(frame.message.tokens))
    return _OF_A_QUESTION if isinstance(frame, AskFactors) else 0.0
