"""Handing up: what waits for brokers that have left goes to the parent, and that of those below is taken."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial
from typing import Protocol

import msgspec
import trio

from hushcast_brokers.broker.downstream import hop_of
from hushcast_brokers.broker.full.handed_up_store import HandedUpStore
from hushcast_brokers.broker.matching import Place
from hushcast_brokers.broker.tables import Tables
from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.frames import BrokerVerdict, HandUp
from hushcast_protocol.brokers.full.hand_up import HandUpShares
from hushcast_protocol.brokers.full.item_labels import ItemLabel, as_tokens
from hushcast_protocol.content.hops import HOP_SIZE, Hop, HopMessage
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import Spool, SpooledMessage, SpoolMove

LOOK_EVERY = 5.0  # seconds between looks at what came for brokers that have left
AGAIN_AFTER = 60.0  # seconds before a parent that had no room is asked again

_UP = Hop(b"\x05".ljust(HOP_SIZE, b"\0"))  # what waits for the parent


class ChildItemTable(Protocol):
    """What a broker knows of its children's items."""

    def asked_again(self, child: PublicKey, names: Iterable[bytes], /) -> None:
        """Hear that a child is to have what comes again for these items."""

    def advertise(self) -> int:
        """Show what changed."""

    def turned_back(self, child: PublicKey, message: Message, /) -> tuple[ItemLabel, ...]:
        """Return the labels under which a message came that is under a child's; raise `PeerError`."""


class HandingUp:
    """That of one broker under `full`."""

    def __init__(
        self, matching: ChildItemTable, tables: Tables, spool: Spool, calendar: Calendar, context: Context
    ) -> None:
        self._matching = matching
        self._tables = tables
        self._spool = spool
        self._calendar = calendar
        self._env = context.env
        self._counters = context.counters
        self._shares = HandUpShares()
        self._left: Set[PublicKey] = frozenset()
        self._have_left = trio.Event()
        self._more = trio.Event()
        self.returned: HandedUpStore | None = None
        """At the root."""

    def follow(self, children: Set[PublicKey]) -> None:
        """Hear who the children are by the tree of now; who is back among them gets again what it missed."""
        before, self._left = self._left, self._tables.routes.children - children
        for child in before - self._left:
            self._matching.asked_again(child, self._tables.routes.of(child))
        self._matching.advertise()
        if self._left:
            self._have_left.set()

    def divert(self, interested: Set[Place]) -> Set[Place]:
        """Return for whom a message is to wait: all who are interested."""
        return interested

    async def run(self) -> None:
        """Have what waits for brokers that have left wait for the parent, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self.returned is not None:
                await self.returned.load()
                nursery.start_soon(self.returned.run)
            while True:
                self._have_left = trio.Event()
                for child in self._left:
                    await self._hand_up(child)
                if self._left:
                    await trio.sleep(LOOK_EVERY)
                else:
                    await self._have_left.wait()

    async def take(self, child: PublicKey, message: Message) -> None:
        """Take what a broker below hands up; durable on return. Raises `Refusal`."""
        if message.day < self._calendar.open_days(self._env.now())[0]:
            raise Refusal("day")
        try:
            check_message(message)
            labels = self._matching.turned_back(child, message)
        except PeerError:
            raise Refusal("form") from None
        if not labels:
            raise Refusal("unknown")
        self._shares.take(child, message)
        try:
            await self._put(message, labels)
        except Refusal as refusal:
            if refusal.reason == "quota":  # it is handed up again
                self._shares.give_back(child, message)
            raise
        await self._spool.durable()

    async def _put(self, message: Message, labels: tuple[ItemLabel, ...]) -> None:
        if self.returned is not None:
            await self.returned.take(message, labels)
        elif not self._has_room(len(message.body)):
            raise Refusal("quota")
        else:
            self._spool.put([HopMessage(_UP, _under(message, labels))])
            self._more.set()

    async def linked(self, upstream: Upstream) -> None:
        """Give the parent what waits for it, until the link ends; raises `TransportError` then."""
        while True:
            self._more = trio.Event()
            items = await self._spool.waiting(_UP)
            if not items:
                await self._more.wait()
                continue
            asked = [(item, upstream.post(partial(HandUp, message=item.message))) for item in items]
            verdicts = [self._answered(item, await upstream.answer(awaited)) for item, awaited in asked]
            if "quota" in verdicts:
                await trio.sleep(AGAIN_AFTER)

    def expire(self, day: int) -> None:
        """Forget the days up to this one."""
        self._shares.expire(day)
        if self.returned is not None:
            self.returned.expire(day)

    def _answered(self, item: SpooledMessage, verdict: BrokerVerdict) -> BrokerVerdict:
        if verdict != "quota":
            self._counters.add("messages_handed_up" if verdict == "accepted" else "messages_orphaned")
            self._spool.done([item])
        return verdict

    async def _hand_up(self, child: PublicKey) -> None:
        """Have what waits for a broker that has left wait for the parent, as far as there is room."""
        has_room = True
        while has_room and (items := await self._spool.waiting(hop_of(child))):
            moves = []
            for item in items:
                labels = self._labels(child, item)
                if not labels:
                    self._counters.add("messages_orphaned")
                    self._spool.done([item])
                elif self.returned is not None:
                    has_room = await self._is_returned(self.returned, item, labels)
                elif has_room := self._spool.has_share(_UP, item.size):
                    moves.append(SpoolMove(item, _UP, _under(item.message, labels)))
                if not has_room:
                    break
            await self._spool.move(moves)
            self._more.set()

    async def _is_returned(
        self, returned: HandedUpStore, item: SpooledMessage, labels: tuple[ItemLabel, ...]
    ) -> bool:
        """Give a message back to the root that this broker is; return whether there was room."""
        try:
            await returned.take(item.message, labels)
        except Refusal as refusal:
            if refusal.reason == "quota":
                return False
            self._counters.add("messages_orphaned")
        await self._spool.durable()
        self._spool.done([item])
        return True

    def _labels(self, child: PublicKey, item: SpooledMessage) -> tuple[ItemLabel, ...]:
        try:
            return self._matching.turned_back(child, item.message)
        except PeerError:
            return ()

    def _has_room(self, size: int) -> bool:
        return self._spool.has_share(_UP, size) and not self._spool.is_full(size)


def _under(message: Message, labels: tuple[ItemLabel, ...]) -> Message:
    """Return a message under other labels, of which it has no more than before."""
    (tokens,) = as_tokens(labels)
    return msgspec.structs.replace(message, tokens=tokens)
