"""Colluding relays that know the topics and infer subscriptions' conditions from probes.

They open the messages that are dropped at them and that pass them. Each topic has one subscription, so all
probes on it are of that one. For each attribute they guess which of all subscriptions' conditions it has, and
the ends of its range. They are not told which one is the entry condition, which relays hold anyway (`lon`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.content.attributes import Label, Number, Value, Values
from hushcast_protocol.content.bodies import open_body
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import Between, Condition, Equals, Predicate
from hushcast_protocol.content.topics import Interest, Topic, make_topic
from hushcast_protocol.overlay.forwarding import ForwardingDecision, Router
from hushcast_runtime.environment import Environment
from hushcast_testnet.simulations.corrupt_router import CorruptRouter
from hushcast_testnet.simulations.overlay_members import OverlayMember, OverlayWorld

WIDTHS = {
    "lat": 0.1,
    "lon": 0.005,
}  # of a condition, as shares of the range; a message enters by the narrowest
_ATTRIBUTES = ["kind", "lat:-90..90:0.001", "lon:-180..180:0.001"]
_KIND = 8  # random bytes of the label that a condition wants


def draw_interest(name: str, env: Environment) -> Interest:
    """Draw the interest of a subscriber: a condition on each attribute of a topic of this name."""
    topic = make_topic(name, _ATTRIBUTES)
    return Interest(topic, Predicate(tuple(_draw(attribute, env) for attribute in topic.attributes)))


def _draw(attribute: Label | Number, env: Environment) -> Condition:
    if isinstance(attribute, Label):
        return Equals(attribute, env.randomness(_KIND).hex())
    span = round(WIDTHS[attribute.name] * attribute.last)
    low = env.below(attribute.last - span + 1)
    return Between(attribute, low, low + span)


def draw_values(interest: Interest, env: Environment) -> dict[str, Value]:
    """Draw the attributes of a publication that an interest wants."""
    return {
        condition.attribute.name: condition.value
        if isinstance(condition, Equals)
        else condition.low + env.below(condition.high - condition.low + 1)
        for condition in interest.predicate.conditions
    }


class ProbeReaders:
    """The knowledge that they share, and their findings."""

    def __init__(self, simulated: OverlayWorld, interests: Sequence[Interest]) -> None:
        self._simulated = simulated
        self._interests = interests
        self._known: set[bytes] = set()
        self._probes: dict[Topic, list[Values]] = {interest.topic: [] for interest in interests}

    def bribe(self, relays: list[OverlayMember]) -> None:
        """Have relays read from now on."""
        for member in relays:
            relay = member.daemon.overlay.relay
            assert relay is not None
            relay.forwarding._router = _ReadingRouter(relay.forwarding._router, self)

    def read(self, message: Message) -> None:
        """Open a message if it is of a topic that they know, and keep the attributes of a probe."""
        if message.id in self._known:
            return
        self._known.add(message.id)
        for topic, probes in self._probes.items():
            try:
                content = open_body(
                    self._simulated.derive(topic, self._simulated.network.id, message.day), message
                )
            except AuthenticationError:
                continue
            if content.probe:
                probes.append(content.values)

    def found(self) -> dict[str, Any]:
        """Return by attribute how often its condition is named, and how much of it is found."""
        names = [condition.attribute.name for condition in self._interests[0].predicate.conditions]
        probes = [self._probes[interest.topic] for interest in self._interests]
        wanted = {name: [_condition(interest, name) for interest in self._interests] for name in names}
        return {
            "trials": len(self._interests),
            "probes": round(fmean(map(len, probes)), 2),
            "by_chance": round(1 / len(self._interests), 4),
            "named": {name: round(conditions_named(probes, wanted[name]), 4) for name in names},
            "found": {name: round(fmean(map(share_found, probes, wanted[name])), 4) for name in names},
        }


class _ReadingRouter(CorruptRouter):
    """One reader's decisions: those of an honest relay."""

    def __init__(self, honest: Router, readers: ProbeReaders) -> None:
        super().__init__(honest)
        self._readers = readers

    def route(
        self, message: Message, previous: bytes, now: float, only: Callable[[Hop], bool] | None = None
    ) -> ForwardingDecision:
        self._readers.read(message)
        return super().route(message, previous, now, only)


def conditions_named(probes: Sequence[Sequence[Values]], wanted: Sequence[Condition]) -> float:
    """Return the share of subscriptions whose condition is that of all which most of its probes meet.

    `probes[i]` are those of the subscription that has the condition `wanted[i]`; conditions are of one
    attribute, and equally wide. Where several are met equally often, each counts for its part.
    """
    hits = []
    for number, seen in enumerate(probes):
        met = [sum(Predicate((condition,)).matches(values) for values in seen) for condition in wanted]
        hits.append((met[number] == max(met)) / met.count(max(met)))
    return fmean(hits)


def share_found(probes: Sequence[Mapping[str, Value]], condition: Condition) -> float:
    """Return how much of a condition its probes show, from 0 to 1.

    Of a range what it has in common with that from the lowest to the highest value seen, of both together:
    who takes the whole range for it finds its width. Of a label 1 if it is the one seen most often.
    """
    name = condition.attribute.name
    seen = [values[name] for values in probes if name in values]
    if not seen:
        return 0.0
    if isinstance(condition, Equals):
        most = Counter(seen).most_common()
        first = [value for value, count in most if count == most[0][1]]
        return (condition.value in first) / len(first)
    places = [value for value in seen if isinstance(value, int)]
    low, high = min(places), max(places)
    common = min(high, condition.high) - max(low, condition.low) + 1
    return max(0, common) / (max(high, condition.high) - min(low, condition.low) + 1)


def _condition(interest: Interest, name: str) -> Condition:
    return next(known for known in interest.predicate.conditions if known.attribute.name == name)
