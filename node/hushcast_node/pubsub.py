"""What applications ask of a daemon, whatever carries their messages: publish, subscribe, unsubscribe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hushcast_node.inbox import Received
from hushcast_protocol.bodies import Content
from hushcast_protocol.predicates import Predicate
from hushcast_protocol.secrets import Seed
from hushcast_protocol.topics import Interest, Topic


@dataclass(frozen=True)
class Accepted:
    """A publication that the network took over."""

    id: bytes


class Feed(Protocol):
    """One application's view of a subscription."""

    @property
    def nodes(self) -> int:
        """How many relays route to the subscription."""

    async def next(self) -> tuple[int, Received] | None:
        """Return the next message and its number; `None` when the subscription ended."""

    def shown(self, number: int) -> None:
        """Note that the messages up to `number` were shown."""

    def close(self) -> None:
        """Stop listening."""


class PubSub(Protocol):
    """Publish/subscribe as applications see it; every method raises `Refusal` with a reason for people."""

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Accepted:
        """Return once the network has taken the message over; `author` signs it inside the seal."""

    async def subscribe(self, interest: Interest) -> Feed:
        """Return once the messages that are wanted reach this daemon; the subscription outlives the feed."""

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None = None) -> bool:
        """End one subscription to a topic, or without a predicate all; return whether there was one."""

    def subscriptions(self) -> list[dict[str, Any]]:
        """Describe the subscriptions held, `{"topic", …}` each."""

    def status(self) -> dict[str, Any]:
        """Describe the daemon."""
