"""Receivers: the pseudonyms, one for each day, by which one route, or as published all, gets its messages."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from hushcast_central.user.pseudonym import Pseudonym
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import RoutedInterest, Tokens
from hushcast_runtime.carriers.coverage import RouteCoverage
from hushcast_runtime.carriers.route_delivery import RouteDelivery
from hushcast_runtime.storage.past_days import PastDays


@dataclass(eq=False)
class CentralRoute:
    """One interest, and what is known of how it is routed."""

    wanted: RoutedInterest
    receiver: Receiver
    coverage: RouteCoverage = field(default_factory=RouteCoverage)
    ready: trio.Event = field(default_factory=trio.Event)
    """Set when messages of the running day wait for it at the server; and when it has ended."""
    told: bytes | None = None
    """The pseudonym that traces name it by."""
    ended: list[Pseudonym] = field(default_factory=list)
    """Those that the server is to forget, once it has ended."""
    _tokens: dict[int, Tokens] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._delivery = RouteDelivery(self.wanted)

    @property
    def topic(self) -> str:
        """The topic's name, for traces."""
        return self.wanted.interest.topic.name

    async def tokens(self, day: int) -> Tokens:
        """Return the tokens of a day."""
        if day not in self._tokens:
            while len(self._tokens) > 2:  # yesterday's, today's and tomorrow's are in use
                del self._tokens[min(self._tokens)]
            self._tokens[day] = await self.wanted.tokens(day)
        return self._tokens[day]

    def is_covered(self, pseudonym: Pseudonym) -> bool:
        """Tell whether the server routes all of it to a pseudonym, as far as is known."""
        tokens = self._tokens.get(pseudonym.day)
        return tokens is not None and pseudonym.held.issuperset(tokens.entries)

    async def take(self, messages: list[Message]) -> None:
        """Hand messages in, unless the route ends meanwhile; durable on return."""
        await self._delivery.take(messages)

    def silence(self) -> None:
        """Hand in nothing more, at once."""
        self._delivery.silence()
        self.ready.set()  # who still waits for it hears from whoever wanted it that it ended


@dataclass(eq=False)
class Receiver:
    """What receives for its routes."""

    name: bytes
    """16 bytes, the same after a restart."""
    renewal: float
    """Share of a day before its end at which tomorrow's pseudonym is made; each receiver has its own."""
    backoff: Backoff
    past: PastDays
    """What it lacks of days gone by."""
    past_backoff: Backoff
    found_empty: tuple[int, PublicKey] | None = None
    """The day gone by of which nothing came by the last question, and the proxy that it went through."""
    routes: dict[bytes, CentralRoute] = field(default_factory=dict)
    """By the name of what is wanted."""
    pseudonyms: dict[int, Pseudonym] = field(default_factory=dict)
    """By day."""
    avoided: PublicKey | None = None
    """A proxy that did not answer when it was tried first."""
    looks: trio.Event = field(default_factory=trio.Event)
    """Set when there may be something to do."""
    past_looks: trio.Event = field(default_factory=trio.Event)
    """Set when it may lack more."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    def look(self) -> None:
        """See to it that what is to be done is done now."""
        self.looks.set()
