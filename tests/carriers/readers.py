"""Both ends of a carrier under test: who wants messages and takes them, and who hands them over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import trio
from small_network import EPOCH_SECONDS, until

from hushcast_local.token_scheme import TokenScheme
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.content.bodies import open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Carrier, Tokens
from hushcast_runtime.carriers.daily_tokens import DailyTokens
from hushcast_runtime.environment import Environment

ROUNDS = 20  # of handing over one message
BETWEEN = 30.0  # seconds between two rounds, as the outbox waits at first
SILENCE = 2.0 * EPOCH_SECONDS  # after which what has not come does not come
UNWANTED_WITHIN = 600.0  # seconds for which a carrier may wait for somebody who subscribes a moment later

Keys = Callable[[Topic, int], TopicKey]
"""The key of a topic for a day."""


class DiskError(HushcastError):
    """What a reader raises whose disk does not take a message."""


class Reader:
    """A `RoutedInterest` that knows ids as a subscription does; what it has on `disk` outlives a restart."""

    def __init__(
        self, keys: Keys, topic: Topic, env: Environment, where: str = "", scheme: TokenScheme | None = None
    ) -> None:
        self.name = env.randomness(16)
        self.interest = Interest(topic, parse_where(where, topic.attributes))
        self.disk: dict[bytes, bytes] = {}
        """Payloads by the id of their message, in order of arrival: what is shown, each once."""
        self.handed: Counter[bytes] = Counter()
        """How often each message was handed in."""
        self.failures = 0
        """How many of the next batches are not taken."""
        self.failed = 0
        """How many were not."""
        self.hangs = False
        """Whether the disk never returns."""
        self.terms: Mapping[str, Any] | None = None
        """What is asked of the carrier beside."""
        self.since: int | None = None
        """The first day of which all is wanted."""
        self.lost = 0
        """How many messages the carrier said were lost where they waited."""
        self.refusal: str | None = None
        """Why the network did not take it."""
        self._keys = keys
        self._scheme = scheme or DailyTokens()

    async def tokens(self, day: int) -> Tokens:
        await trio.lowlevel.checkpoint()
        key = self._keys(self.interest.topic, self._scheme.key_day(day))
        return self._scheme.wanted(key, self.interest)

    def knows(self, message_id: bytes) -> bool:
        return message_id in self.disk

    def lose(self, count: int | None) -> None:
        self.lost += 1 if count is None else count

    def miss(self, message_ids: list[bytes]) -> None:
        self.lost += len(message_ids)

    def refuse(self, reason: str) -> None:
        self.refusal = reason

    async def take(self, messages: list[Message]) -> None:
        self.handed.update(message.id for message in messages)
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        if self.failures:
            self.failures -= 1
            self.failed += 1
            raise DiskError("no space is left")
        for message in messages:
            content = open_body(self._keys(self.interest.topic, message.day), message)
            self.disk.setdefault(message.id, content.payload)

    @property
    def payloads(self) -> list[bytes]:
        """What was taken, in an order that says nothing."""
        return sorted(self.disk.values())


class Receipts:
    """A `Handover` that notes everything."""

    def __init__(self) -> None:
        self.tried: list[bytes] = []
        self.takers: list[bytes] = []
        self.failures: list[str] = []

    def note_try(self, taker: bytes) -> None:
        self.tried.append(taker)

    def note_receipt(self, taker: bytes) -> None:
        self.takers.append(taker)

    def note_failure(self, reason: str) -> None:
        self.failures.append(reason)


async def hand_over(carrier: Carrier, message: Message) -> Receipts:
    """Hand a message over, again and again, until somebody has given a receipt."""
    receipts = Receipts()
    for _ in range(ROUNDS):
        await carrier.hand_over(message, receipts, receipts.takers)
        if receipts.takers:
            return receipts
        await trio.sleep(BETWEEN)
    raise AssertionError(f"no receipt: {receipts.failures}")


async def shows(reader: Reader, *payloads: bytes) -> None:
    """Wait until a reader has taken just these, and nothing else."""
    await until(lambda: len(reader.disk) >= len(payloads), what=f"{len(payloads)} messages were taken")
    assert reader.payloads == sorted(payloads)


async def shows_no_more(reader: Reader, *payloads: bytes) -> None:
    """As `shows`, and nothing else comes later."""
    await shows(reader, *payloads)
    await trio.sleep(SILENCE)
    assert reader.payloads == sorted(payloads)
