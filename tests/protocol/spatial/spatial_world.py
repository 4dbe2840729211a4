"""A small feed: batches with tables of weights, subscriptions, and what these want by brute force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from random import Random

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Batch, BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.located_answer import LocatedAnswer, ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import MAX_DISTANCE, Place, chord, place_of, square
from hushcast_protocol.spatial.tmr_tree import TreeEntry, TreePart
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_table

OWNER, STRANGER = Seed(bytes([7]) * 32), Seed(bytes([8]) * 32)
ALPHAS, THRESHOLDS = (100, 300, 500, 700, 900), (500, 600, 700, 800, 900)  # the paper's grid, section 4.1
VOCABULARY = [f"{first}{last}" for first in "bdfgklmnprstvz" for last in ("a", "el", "or", "ünde", "9")]
_POPULAR = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
_TOWNS = ((60.17, 24.94), (60.2, 25.0), (52.5, 13.4), (-17.7, 179.99), (89.99, 0.0))
START, SECONDS = 1_700_000_000, 300


def place(random: Random) -> Place:
    """A place in or around a town; towns are at the seam and at the pole, too."""
    latitude, longitude = random.choice(_TOWNS)
    around = random.choice((0.0, 0.01, 0.3))
    latitude = min(latitude + random.gauss(0, around), 90.0)
    return place_of(latitude, (longitude + random.gauss(0, around) + 180) % 360 - 180)


def words(random: Random, most: int) -> tuple[str, ...]:
    """Some words, of which a few are common and most are rare."""
    return tuple(sorted(set(random.choices(VOCABULARY, _POPULAR, k=random.randint(1, most)))))


def message(random: Random, number: int, name: str) -> LocatedMessage:
    """A message of a batch."""
    said = words(random, 20) if random.random() < 0.95 else ()
    return LocatedMessage(number, name, place(random), said, random.randbytes(random.randrange(40)))


def subscription(random: Random, near: Iterable[LocatedMessage] = ()) -> LocatedSubscription:
    """A subscription of the paper's grid, now and then at its ends, often near one of these messages."""
    some = list(near)
    home, wanted = place(random), words(random, 5)
    if some and random.random() < 0.6:
        one = random.choice(some)
        home = one.place if random.random() < 0.5 else home
        wanted = tuple(sorted(set(random.choices(one.words, k=3)))) if one.words else wanted
    ends = random.random() < 0.1
    alpha = random.choice((0, 1000)) if ends else random.choice(ALPHAS)
    threshold = random.choice((0, 1, 1000)) if ends else random.choice(THRESHOLDS)
    return LocatedSubscription(home, wanted, alpha, threshold)


def entries(part: TreePart | None) -> Iterator[TreeEntry]:
    """All messages of a tree."""
    if isinstance(part, TreeEntry):
        yield part
    for child in getattr(part, "children", ()):
        yield from entries(child)


def wants(one: LocatedSubscription, other: LocatedMessage, table: WeightTable) -> bool:
    """Equations 1 to 3 as they stand, in eighty digits."""
    weights = {word: table.weights.get(word, table.body.other) for word in one.words}
    with localcontext() as context:
        context.prec = 80
        alpha, theta = Decimal(one.alpha) / 1000, Decimal(one.threshold) / 1000
        common = sum(weight for word, weight in weights.items() if word in other.words)
        by_words = Decimal(common) / sum(weights.values())
        distance = Decimal(square(one.place, other.place)).sqrt()
        by_place = max(Decimal(0), 1 - distance / table.body.most)
        return alpha * by_words + (1 - alpha) * by_place - theta > Decimal("-1e-60")


@dataclass
class World:
    """Three intervals of a feed; `draw` makes one from a seed."""

    random: Random
    feeds: list[ProviderBatch]
    subscriptions: list[LocatedSubscription]

    @staticmethod
    def draw(random: Random, most: int = 30, intervals: int = 3, subscriptions: int = 4) -> World:
        """Draw batches of up to `most` messages, and subscriptions."""
        feeds: list[ProviderBatch] = []
        previous: Batch | None = None
        table: WeightTable | None = None
        for _ in range(intervals):
            interval = BatchInterval(START if previous is None else previous.end, SECONDS, previous)
            said = [message(random, interval.number, str(at)) for at in range(random.randint(0, most))]
            if table is None or random.random() < 0.2:
                weights, other = idf(one.words for one in said)
                farthest = random.choice((chord(1), chord(100), chord(5000), MAX_DISTANCE))
                table = sign_table(OWNER, interval.number, weights, other, farthest)
            whole = make_batch(OWNER, interval, table, random.choice((2, 3, 4, 8)), said)
            owner, previous, root = read_batch(encode(whole))
            assert owner == OWNER.public()
            feeds.append(ProviderBatch(previous, root, table))
        near = [one.message for feed in feeds for one in entries(feed.root)]
        return World(random, feeds, [subscription(random, near) for _ in range(subscriptions)])

    @cached_property
    def answers(self) -> list[list[LocatedAnswer]]:
        """Honest answers, of each interval to each subscription."""
        return [feed.answers(self.subscriptions) for feed in self.feeds]

    def wanted(self, interval: int, number: int) -> list[str]:
        """The ids of the messages of an interval that a subscription wants."""
        feed, one = self.feeds[interval], self.subscriptions[number]
        return sorted(
            entry.message.id for entry in entries(feed.root) if wants(one, entry.message, feed.table)
        )
