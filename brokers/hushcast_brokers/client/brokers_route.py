"""One interest that a daemon keeps routed over brokers, and what is known of how it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from hushcast_brokers.client.attachment_records import AttachedSubscription
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.carriers.coverage import RouteCoverage
from hushcast_runtime.carriers.route_delivery import RouteDelivery
from hushcast_runtime.storage.past_days import PastDays


@dataclass(eq=False)
class BrokersRoute:
    """One interest, and what is known of how it is routed."""

    wanted: RoutedInterest
    terms: AnonymityTerms
    past: PastDays
    """What it may lack of days gone by."""
    is_new: bool
    """Whoever asked for it still waits, and hears of a refusal."""
    ready: trio.Event = field(default_factory=trio.Event)
    """Set when its messages come; and when it has ended."""
    coverage: RouteCoverage = field(default_factory=RouteCoverage)
    is_told: bool = False
    brought: dict[int, bytes] = field(default_factory=dict)
    """By day gone by, the last message of those that came so far."""
    asked: list[AttachedSubscription] = field(default_factory=list)
    """What was asked for it of edge brokers, once it has ended."""

    def __post_init__(self) -> None:
        self._delivery = RouteDelivery(self.wanted)

    @property
    def topic(self) -> str:
        """The topic's name, for traces."""
        return self.wanted.interest.topic.name

    async def take(self, messages: list[Message]) -> None:
        """Hand messages in, unless the route ends meanwhile; durable on return."""
        for message in messages:
            self.coverage.arrived(message.id)
        await self._delivery.take(messages)

    def silence(self) -> None:
        """Hand in nothing more, at once."""
        self._delivery.silence()
        self.ready.set()  # who still waits for it hears from whoever wanted it that it ended
