"""The interface for applications, independent of the carrier: publish, subscribe, unsubscribe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hushcast_local.inbox import Gap, Received
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import Predicate
from hushcast_protocol.content.topics import Interest, Topic


@dataclass(frozen=True)
class Accepted:
    """A publication that the network accepted."""

    id: bytes


class Queued(Protocol):
    """A publication that is durable in the outbox."""

    @property
    def id(self) -> bytes:
        """The message's id."""

    async def taken(self) -> None:
        """Return once the network has it; raise `NotYetTaken`, or `Refusal` if it was taken back."""


class Feed(Protocol):
    """One application's view of a subscription."""

    @property
    def nodes(self) -> int:
        """How many relays route to the subscription."""

    async def next(self) -> tuple[int, Received] | Gap | None:
        """Return the next message and its cursor, or a gap; `None` when the subscription ended."""

    @property
    def position(self) -> int:
        """The cursor behind which this feed goes on."""

    def lost(self) -> int:
        """Return how many messages were removed before this feed got them, since last asked."""

    def shown(self, number: int, acknowledged: bool = False) -> None:
        """Note that the messages up to `number` were shown, or are not needed any more."""

    def close(self) -> None:
        """Stop listening."""


class PubSub(Protocol):
    """Publish/subscribe as applications see it; every method raises `Refusal` with a reason for people."""

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Accepted:
        """Return once the network has taken the message over; `author` signs it inside the seal.

        Raises `NotYetTaken` if that failed at first: the outbox tries on.
        """

    async def enqueue(
        self, topic: Topic, content: Content, author: Seed | None = None, at_once: bool = False
    ) -> Queued:
        """Return once it is durable in the outbox; `at_once` refuses where nobody could take it now."""

    def outbox(self) -> list[dict[str, Any]]:
        """Describe the publications that wait for the network, and those that were given up."""

    async def cancel(self, message_id: bytes) -> str | None:
        """Remove a publication from the outbox; return its topic's name, `None` if there is none."""

    async def subscribe(self, interest: Interest, since: int | None = None) -> Feed:
        """Return once the messages that are wanted reach this daemon; the subscription outlives the feed.

        The feed begins behind the cursor `since`, or else behind what was shown.
        """

    async def acknowledge(self, topic: Topic, cursor: int, predicate: Predicate | None = None) -> None:
        """Acknowledge all up to a cursor, of one subscription to a topic or of all; durable on return."""

    def coverage(self, topic: Topic, predicate: Predicate | None = None) -> list[dict[str, Any]]:
        """Describe how much of the network reaches the subscriptions to a topic, or one of them."""

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None = None) -> bool:
        """End one subscription to a topic, or without a predicate all; return whether there was one."""

    def subscriptions(self) -> list[dict[str, Any]]:
        """Describe the subscriptions held, `{"topic", …}` each."""
