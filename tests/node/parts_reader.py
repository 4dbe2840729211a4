"""A subscription that takes parts, and can be killed between any two commits."""

from __future__ import annotations

import contextlib

from mortal_store import MortalStore
from small_network import derive

from hushcast_local.inbox import Inbox
from hushcast_local.inbox_records import MESSAGE, InboxMessage, decode_message
from hushcast_local.subscription import LocalSubscription
from hushcast_local.subscription_start import SubscriptionStart
from hushcast_local.topic_keys import TopicKeys
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.crypto.secrets import Seed, TopicKey
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import part_content, part_nonce, parts_of
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.tracing import NoTracer

FIRES = make_topic("fires", ["kind"])
NETWORK, NAME, TOKENS = bytes(32), b"subscription 1 .", (b"t" * 16,)
SIZES = (1500, 5000)


AUTHOR = Seed(b"a" * 32)
SECRETS = [Seed(bytes([number + 1]) * 32) for number in range(3)]


def payload(number: int) -> bytes:
    return b"%d" % number * SIZES[number % 2]


class Killed(Exception):
    """The process is killed."""


class KilledStore(MortalStore):
    """Its process is killed at one of the next commits, before or behind it."""

    left: int | None = None
    is_behind = False

    async def write(self, *changes: Change) -> None:
        if self.left == 0 and not self.is_behind:
            raise Killed
        await super().write(*changes)
        if self.left == 0:
            raise Killed
        if self.left is not None:
            self.left -= 1


class Reader:
    """A subscription to what is big, which can be killed."""

    def __init__(self) -> None:
        self.env = simulated_environment(1, 1e9)
        self.calendar = Calendar(3600)
        self.day = self.calendar.day(self.env.now())
        self.store = KilledStore()
        self.subscription = self._made()

    def _made(self) -> LocalSubscription:
        self.counters = Counters(COUNTERS)
        context = Context(self.env, self.store, self.counters, NoTracer(), lambda *_: None)
        inbox = Inbox(NAME, self.env, self.store, self.counters)
        keys = TopicKeys(NETWORK, self.env, derive)
        start = SubscriptionStart(self.env.now(), self.calendar)
        interest = Interest(FIRES, parse_where("kind = big", FIRES.attributes))
        return LocalSubscription(NAME, interest, start, None, inbox, keys, context)

    async def take(self, part: Message) -> None:
        """Take it as a carrier brings it."""
        if not self.subscription.knows(part.id):
            await self.subscription.take([part])

    async def die_within(self, part: Message, commits: int) -> None:
        """Be killed as a part comes, if there are so many commits; begin anew with what is on disk."""
        self.store.left, self.store.is_behind = commits // 2, commits % 2 == 1
        with contextlib.suppress(Killed):
            await self.take(part)
        self.store.die()
        self.store.left = None
        self.subscription = self._made()
        await self.subscription.load()

    async def _messages(self) -> list[InboxMessage]:
        await self.store.write()
        return [decode_message(value) for _, value in await self.store.scan(MESSAGE, NAME)]

    async def shown(self) -> list[bytes]:
        """The payloads in the inbox."""
        return [one.payload for one in await self._messages()]

    async def authors(self) -> list[bytes | None]:
        """Their authors."""
        return [one.author for one in await self._messages()]

    def whole(self, number: int, kind: str = "big", author: Seed | None = None) -> Message:
        content = Content(payload(number), {"kind": kind})
        return compose(self.key(self.day), self.day, TOKENS, content, self.env.randomness, author)

    def key(self, day: int) -> TopicKey:
        return derive(FIRES, NETWORK, day)

    def parts(self, whole: Message, secret: Seed, later: int = 0) -> list[Message]:
        day = self.day + later
        return [
            compose(
                self.key(day),
                day,
                TOKENS,
                part_content(secret, whole, one),
                part_nonce(secret, whole, one, day),
            )
            for one in range(parts_of(whole))
        ]
