"""What is subscribed to at an edge broker, how each stands, and which is to be looked at next."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.brokers.beyond import Demands, Group
from hushcast_protocol.brokers.conditions import Crowd, Otherwise
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Terms
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.table import Source

Name = tuple[Source, bytes]
"""A subscription: whose it is, and its name there."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subscription stands."""

    level: int
    """Of its filter, under its condition; bogus sources not counted. The network's is so large at least."""
    shown: Filter | None
    """What is shown outside that brings its messages, if anything is: its own, a wider one, or another's."""
    added: float
    """The share (0 to 1) of the topic's messages that `shown` lets through besides."""
    bogus: int = 0
    """Bogus sources that its client pays for."""
    crowd: Crowd = "edge"
    """Whose sources the level counts."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be told: to whoever is above, how the roots of what is shown changed; to clients.

    `bogus` are bogus sources by subscription, where their number changed, or is said for the first time.
    """

    roots: RootChanges
    told: dict[Name, Standing]
    bogus: dict[Name, int]


class Subscription:
    """One subscription and what is shown for it."""

    __slots__ = (
        *("bogus", "crowd", "demands", "filter", "looked_at", "name", "otherwise", "shown", "terms", "told"),
    )

    def __init__(self, name: Name, filter_: Filter, terms: Terms, minimum: Terms) -> None:
        self.name = name
        self.filter = filter_
        self.terms = terms
        strict = terms if terms.k > 1 else minimum
        self.otherwise: Otherwise = strict.otherwise
        self.demands: Demands = frozenset((one.condition, one.k) for one in (terms, minimum) if one.k > 1)
        self.shown: Filter | None = None
        self.crowd: Crowd = "edge"
        """Who suffices for what is shown."""
        self.bogus = 0
        self.told: Standing | None = None
        """What its client was told last."""
        self.looked_at = -1
        """The change of its topic after which it was looked at last."""

    @property
    def group(self) -> Group:
        """The group of which it is one."""
        return Group(self.filter, self.demands, self.otherwise)


class Asking:
    """The subscriptions on one topic that ask for anything, those looked at longest ago first."""

    __slots__ = ("changes", "hidden", "shown")

    def __init__(self) -> None:
        self.changes = 0
        """How often somebody came or went on the topic."""
        self.shown: dict[Name, Subscription] = {}
        self.hidden: dict[Name, Subscription] = {}

    def __len__(self) -> int:
        return len(self.shown) + len(self.hidden)

    def put(self, one: Subscription) -> None:
        """Take one that was looked at just now, or never."""
        self.take(one)
        (self.hidden if one.shown is None else self.shown)[one.name] = one

    def take(self, one: Subscription) -> None:
        """Take one out, if it is here."""
        self.shown.pop(one.name, None)
        self.hidden.pop(one.name, None)

    def due(self, is_shown: bool) -> Subscription | None:
        """Return the next to be looked at, of those for which something is shown or of the others."""
        first = next(iter((self.shown if is_shown else self.hidden).values()), None)
        return None if first is None or first.looked_at == self.changes else first
