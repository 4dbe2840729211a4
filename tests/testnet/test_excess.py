"""Excess inside the overlay: how many messages reach boxes whose subscribers did not ask for them.

All 200 relays' lease books and routers, walked breadth-first: what daemons decide, without their links.

The bound. A message enters a tree where one of its entry tokens is one of the subscription's, and climbs by
the trunk, which all subscriptions of the topic share. Where an edge of a tree that it rightly entered is an
edge of another tree of the topic, too, it goes along there. In trees of two levels a message crosses at most
one edge between relays, and another tree has that edge with a probability below 1/N. With r origins, t trees
rightly entered and N relays, a pair of a message and a subscription that it does not enter is in excess with

    e  <=  r * t / N  +  tokens * levels * f

where f is the rate of false positives of the fullest Bloom filter. A box is entered by its rarest condition
alone: to its bound is added the share of messages that meet that condition and not the others.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import LeaseSecret, Seed, TopicSecret
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.bloom import false_positive_rate
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.content.predicates import Predicate, parse_where
from hushcast_protocol.content.tokens import entry_tokens, published_tokens, token, topic_key
from hushcast_protocol.content.topics import Topic, make_topic, parse_values
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.forwarding import RecentIds, Router
from hushcast_protocol.overlay.hops import is_host, key_of
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.installations import HostRoot, Installation
from hushcast_protocol.overlay.leases import LeaseBook
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.overlay.trail import LABEL_SIZE
from hushcast_protocol.overlay.tree import plan

pytestmark = pytest.mark.slow

RELAYS = 200
SUBSCRIPTIONS = 60
PUBLICATIONS = 600
ORIGINS = 2  # as the hardened profile has it
NETWORK = bytes(32)
CALENDAR = Calendar(3600)
DAY = 1000
NOW = CALENDAR.day_start(DAY) + CALENDAR.day_seconds / 2
SECRET = TopicSecret(bytes(range(32)))


@dataclass
class Figures:
    """Shares of the pairs of a message and a subscription that it does not match."""

    matched: int
    missed: int
    mismatched: int
    excess: float  # delivered to the box
    entered: float  # of those: let in by the rarest condition
    trees: float  # r * t / N
    bloom: float  # false positives

    @property
    def bound(self) -> float:
        return self.entered + self.trees + self.bloom


class Overlay:
    """Lease books and routers of all relays, and subscriptions installed in them."""

    def __init__(self, number: int) -> None:
        self.draw = random.Random(number).randbytes
        self.relays = [self.draw(32) for _ in range(RELAYS)]
        self.books = {relay: LeaseBook(relay, CALENDAR, self.draw(32)) for relay in self.relays}
        self.routers = {
            relay: Router(relay, HARDENED, book, RecentIds(0.0), self.draw(LABEL_SIZE))
            for relay, book in self.books.items()
        }

    def subscribe(self, topic: Topic, predicate: Predicate) -> tuple[bytes, frozenset[bytes]]:
        """Install a subscription everywhere; return its host, which has no other, and its entry tokens."""
        key = topic_key(topic, NETWORK, DAY)
        host = Seed.draw(self.draw)
        root = HostRoot(host, host.public())
        card = make_host_card(host, host, onion_address(host.public()))
        tree = plan(self.relays, HARDENED.depth, self.draw(32))
        entries = entry_tokens(key, predicate)
        made = Installation(DAY, root, tree, token(key), entries, LeaseSecret(self.draw(32)))
        for relay in self.relays:
            self.books[relay].install(made.install(HARDENED, relay, card), NOW)
        return host.public(), frozenset(entries)

    def publish(self, tokens: tuple[bytes, ...], origins: list[bytes]) -> set[bytes]:
        """Drop a message; return the hosts that get it."""
        message = Message(self.draw(32), DAY, tokens, bytes(TRAIL_SIZE), b"")
        waiting = deque((ORIGIN, origin, message) for origin in origins)
        hosts = set()
        while waiting:
            previous, relay, arrived = waiting.popleft()
            for send in self.routers[relay].route(arrived, previous, NOW).sends:
                if is_host(send.hop):
                    hosts.add(key_of(send.hop))
                else:
                    waiting.append((relay, key_of(send.hop), send.message))
        return hosts

    def worst_filter(self) -> float:
        """The rate of false positives of the fullest filter of any relay."""
        fullest = 0
        for book in self.books.values():
            by_hop: dict[bytes, int] = {}
            for lease in book.leases():
                by_hop[lease.hop] = by_hop.get(lease.hop, 0) + len(lease.elements)
            fullest = max(fullest, *by_hop.values())
        return false_positive_rate(fullest)


Wanted = list[tuple[Topic, str]]
Told = list[tuple[Topic, list[str]]]


def measure(wanted: Wanted, told: Told, number: int) -> Figures:
    overlay, chance = Overlay(number), random.Random(number)
    held = []
    for topic, where in wanted:
        predicate = parse_where(where, topic.attributes)
        held.append((topic, predicate, *overlay.subscribe(topic, predicate)))
    false_positives = overlay.worst_filter()
    matched = missed = mismatched = excess = entered = 0
    trees = bloom = 0.0
    for topic, settings in told:
        values = parse_values(topic, settings)
        tokens = published_tokens(topic_key(topic, NETWORK, DAY), topic, values, overlay.draw)
        reached = overlay.publish(tokens, chance.sample(overlay.relays, ORIGINS))
        ways_in = [topic == asked and not entries.isdisjoint(tokens) for asked, _, _, entries in held]
        right = sum(ways_in)
        for (asked, predicate, host, _), way_in in zip(held, ways_in, strict=True):
            if asked == topic and predicate.matches(values):
                matched += 1
                missed += host not in reached
                continue
            mismatched += 1
            excess += host in reached
            entered += way_in
            trees += 0 if way_in or asked != topic else ORIGINS * right / RELAYS
            bloom += ORIGINS * len(tokens) * HARDENED.depth * false_positives
    shares = (one / mismatched for one in (excess, entered, trees, bloom))
    return Figures(matched, missed, mismatched, *shares)


def show(what: str, figures: Figures) -> None:
    print(  # `pytest -s` shows it
        f"\n{what}: excess {figures.excess:.2e} of {figures.mismatched} pairs, bound {figures.bound:.2e}"
        f" = {figures.entered:.2e} rarest condition + {figures.trees:.2e} trees + {figures.bloom:.2e} Bloom;"
        f" {figures.matched} matched, {figures.missed} missed"
    )


def private(name: str, *specs: str) -> Topic:
    return make_topic(name, specs, SECRET)


def span(chance: random.Random, name: str, share: float) -> str:
    """A condition on 16 bits whose range has about this share of the places."""
    width = max(1, int(65_536 * share * chance.uniform(0.5, 1.5)))
    low = chance.randrange(65_536 - width)
    return f"{name} in [{low}, {low + width}]"


def test_labels() -> None:
    """Each label a topic of its own: nothing is shared, and false positives are all there is."""
    chance = random.Random(1)
    topics = [private(f"topic {number}") for number in range(20)]
    wanted: Wanted = [(topics[number % 20], "") for number in range(SUBSCRIPTIONS)]
    told: Told = [(chance.choice(topics), []) for _ in range(PUBLICATIONS)]
    figures = measure(wanted, told, 1)
    show("labels", figures)
    assert figures.missed == 0
    assert figures.matched > 1000
    assert figures.excess <= 1e-3
    assert figures.bound <= 1e-3


def test_labels_of_one_topic() -> None:
    """Values of an attribute share a trunk, as ranges do."""
    chance = random.Random(2)
    topic = private("events", "kind")
    wanted: Wanted = [(topic, f"kind = {number % 20}") for number in range(SUBSCRIPTIONS)]
    told: Told = [(topic, [f"kind={chance.randrange(20)}"]) for _ in range(PUBLICATIONS)]
    figures = measure(wanted, told, 2)
    show("labels of one topic", figures)
    assert figures.missed == 0
    assert figures.entered == 0
    assert figures.excess <= figures.bound


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_ranges_of_16_bits(share: float) -> None:
    chance = random.Random(3)
    topic = private("readings", "a:0..65535")
    wanted: Wanted = [(topic, span(chance, "a", share)) for _ in range(SUBSCRIPTIONS)]
    told: Told = [(topic, [f"a={chance.randrange(65_536)}"]) for _ in range(PUBLICATIONS)]
    figures = measure(wanted, told, 3)
    show(f"ranges of {share:.0%}", figures)
    assert figures.missed == 0
    assert figures.matched > 200
    assert figures.entered == 0
    assert figures.excess <= figures.bound


def uniform(chance: random.Random) -> int:
    return chance.randrange(65_536)


def clustered(chance: random.Random) -> int:
    centre = chance.choice((9_000, 30_000, 52_000))
    return min(max(int(chance.gauss(centre, 1_500)), 0), 65_535)


@pytest.mark.parametrize("draw", [uniform, clustered])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_boxes(dimensions: int, draw: Callable[[random.Random], int]) -> None:
    chance = random.Random(dimensions)
    names = "abc"[:dimensions]
    topic = private("places", *(f"{name}:0..65535" for name in names))
    wanted: Wanted = [
        (topic, ", ".join(span(chance, name, chance.choice((0.03, 0.1, 0.3))) for name in names))
        for _ in range(SUBSCRIPTIONS)
    ]
    told: Told = [(topic, [f"{name}={draw(chance)}" for name in names]) for _ in range(PUBLICATIONS)]
    figures = measure(wanted, told, 4)
    show(f"boxes of {dimensions}, {draw.__name__}", figures)
    assert figures.missed == 0
    assert figures.matched > 20
    assert figures.entered <= figures.excess <= figures.bound
