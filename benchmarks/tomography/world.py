"""The world of the model: a tree of brokers, clients at its edges, and what they are interested in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerTree, check_tree, sign_tree
from hushcast_protocol.brokers.clear_words import ShownFilter, from_outside, outside
from hushcast_protocol.brokers.filters import Filter, Sides
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.tree_paths import between
from hushcast_protocol.content.topics import Topic

BITS = 8  # of each of a topic's two numbers
DEEPEST = 5  # halvings of both to the narrowest filters that are drawn
EPOCH_SECONDS = 3600
CALENDAR = Calendar(EPOCH_SECONDS)
NOW = 1000.0 * EPOCH_SECONDS + 400


@dataclass(frozen=True)
class Size:
    """How large the world is."""

    inner: int
    edges: int
    clients: int
    filters_each: int
    topics: int
    questions: int


FULL = Size(inner=9, edges=40, clients=1_000, filters_each=3, topics=6, questions=10_000)
SHORT = Size(inner=2, edges=6, clients=48, filters_each=2, topics=1, questions=200)


class World:
    """Brokers by key, and clients with their filters, all drawn from a seed."""

    def __init__(self, size: Size, seed: int) -> None:
        self.size = size
        self.random = Random(f"tomography {seed}")  # noqa: S311 - the same for each seed
        self.seeds = [Seed(self.random.randbytes(32)) for _ in range(1 + size.inner + size.edges)]
        self.root, *others = (one.public() for one in self.seeds)
        self.inner, self.edges = others[: size.inner], others[size.inner :]
        self.parent = dict.fromkeys(self.inner, self.root)
        self.parent |= {edge: self.inner[at % size.inner] for at, edge in enumerate(self.edges)}
        self.tree = self._signed()
        self.topics = [self._topic() for _ in range(size.topics)]
        last = (1 << BITS) - 1
        self.towns = [(self.random.randint(0, last), self.random.randint(0, last)) for _ in range(4)]
        self.home = [self.random.choice(self.edges) for _ in range(size.clients)]
        self.wanted: list[list[Filter]] = [
            [self.draw() for _ in range(size.filters_each)] for _ in range(size.clients)
        ]

    def draw(self, least: int = 2, random: Random | None = None) -> Filter:
        """Draw a filter: topics are popular unequally, places lie around a few towns, cells nest.

        Cells come from halving the grids `least` to `DEEPEST` times: 0 is the whole topic.
        """
        random = random or self.random
        rank = min(int(random.paretovariate(1.0)), len(self.topics)) - 1
        x, y = random.choice(self.towns)
        depth = random.randint(least, DEEPEST)
        spots = (round(random.gauss(x, 12)), round(random.gauss(y, 12)))
        size = BITS - depth
        cells = (min(max(spot, 0), (1 << BITS) - 1) >> size << size for spot in spots)
        sides: Sides = tuple((low, low + (1 << size) - 1) if depth else None for low in cells)
        return Filter(self.topics[rank], sides)

    def messages(self, number: int) -> Iterator[tuple[Filter, Sides]]:
        """Yield messages, each as a filter of its topic and its point; the same each time."""
        random = Random("messages")  # noqa: S311 - the same each time
        for _ in range(number):
            near = self.draw(random=random)
            places = [random.randint(*side) for side in near.sides if isinstance(side, tuple)]
            yield near, tuple((place, place) for place in places)

    def key_of(self, broker: PublicKey) -> Seed:
        """Return the seed of a broker's key."""
        return next(seed for seed in self.seeds if seed.public() == broker)

    def _signed(self) -> BrokerTree:
        keys = [self.root, *self.inner, *self.edges]
        seats = [
            BrokerPosition(
                key,
                f"127.0.0.1:{port}",
                "edge" if key in self.edges else "inner" if key in self.parent else "root",
                self.parent.get(key),
            )
            for port, key in enumerate(keys, 1)
        ]
        network = BrokersNetwork("tomography", "clear", EPOCH_SECONDS, self.root)
        return check_tree(sign_tree(self.seeds[0], network, 1, seats), network)

    def _topic(self) -> Topic:
        last = (1 << BITS) - 1
        return outside(ShownFilter(self.random.randbytes(16), (last, last), (None, None))).topic


def question(
    origin: PublicKey,
    target: PublicKey,
    given: Filter,
    k: int,
    condition: AnonymityCondition,
    sources: tuple[bytes, ...] = (),
    spread: int = 1,
) -> TomographyQuestion:
    """Return a question that lets bogus sources count."""
    return TomographyQuestion(from_outside(given), origin, target, k, condition, spread, False, sources)


def asked(gathered: StatedFilters, one: TomographyQuestion) -> ComparableQuestion:
    """Return a question with its filter and its way."""
    return ComparableQuestion(one, outside(one.filter), between(gathered.tree, one.origin, one.target) or ())
