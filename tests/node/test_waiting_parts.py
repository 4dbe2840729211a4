"""Parts in any order, doubled, mixed, lost, with kills between: a message is shown once, whole, or not."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from small_network import derive
from test_inbox import MortalStore

from hushcast_local.inbox import Inbox
from hushcast_local.inbox_records import MESSAGE, PART, InboxMessage, decode_message
from hushcast_local.subscription import LocalSubscription
from hushcast_local.subscription_start import SubscriptionStart
from hushcast_local.topic_keys import TopicKeys
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.secrets import Seed, TopicKey
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import part_content, part_nonce, parts_of
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import Change
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


@settings(max_examples=40, deadline=None)
@given(st.data())
async def test_whatever_comes_of_some_messages_each_is_shown_once_or_not_at_all(data: st.DataObject) -> None:
    reader = Reader()
    wholes = [reader.whole(number) for number in range(3)]
    sent: list[tuple[int, int, Message]] = []
    for number, whole in enumerate(wholes):
        for later in (0, 1):  # what was sealed anew is another message, and the same part
            parts = reader.parts(whole, SECRETS[number], later)
            sent += [(number, place, part) for place, part in enumerate(parts)]
    order = data.draw(st.permutations(sent))
    order = order[: data.draw(st.integers(0, len(order)))]
    kills = data.draw(st.sets(st.integers(0, 50), max_size=8))
    for at, (_, _, part) in enumerate(order):
        if at in kills:
            await reader.die_within(part, data.draw(st.integers(0, 2)))
        await reader.take(part)
    came = {(number, place) for number, place, _ in order}
    complete = {
        number for number in range(3) if all((number, at) in came for at in range(parts_of(wholes[number])))
    }
    assert sorted(await reader.shown()) == sorted(payload(number) for number in complete)
    assert len(await reader.store.scan(PART)) == sum(number not in complete for number, _ in came)


async def test_the_condition_and_the_author_are_the_wholes() -> None:
    reader = Reader()
    for number, kind in enumerate(("small", "big")):
        for part in reader.parts(reader.whole(number, kind, AUTHOR), SECRETS[number]):
            await reader.take(part)
    assert await reader.shown() == [payload(1)]
    assert await reader.authors() == [AUTHOR.public()]
    assert reader.counters["messages_excess"] == 1


async def test_a_whole_that_came_in_one_piece_or_by_other_parts_is_not_shown_again() -> None:
    reader = Reader()
    whole = reader.whole(0)
    for part in [*reader.parts(whole, SECRETS[0]), whole, *reader.parts(whole, SECRETS[1], 3)]:
        await reader.take(part)
    assert await reader.shown() == [payload(0)]
    assert not await reader.store.scan(PART)


async def test_what_waits_has_an_end_which_is_told() -> None:
    reader = Reader()
    parts = reader.parts(reader.whole(0), SECRETS[0])
    for part in parts[1:]:
        await reader.take(part)
    listener = reader.subscription.inbox.listen()
    await reader.subscription.lapse(reader.day)
    assert listener.lost() == 0
    await reader.subscription.lapse(reader.day + 1)
    assert listener.lost() == 1
    await reader.take(parts[0])
    for part in reader.parts(reader.whole(1), SECRETS[1]):
        await reader.take(part)
    assert await reader.shown() == [], "its day is forgotten, and so are the ids by which it would be known"
    assert not await reader.store.scan(PART)
