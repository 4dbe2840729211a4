"""Measures what figures 6 to 9 show, over the paper's alpha and theta (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_shares
from time import process_time

import numpy as np
from msgspec.structs import replace

from hushcast_located.crowd import Crowd, Numbers, crowd_by
from hushcast_located.figures.proof_costs import ProofCosts, measure_proofs
from hushcast_located.local_engine import LocalEngine, MatchingWork
from hushcast_located.workload import Workload, greatest_distance, same_shares
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.tmr_tree import TreeEntry, entries_of
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_table

GRID = [(alpha, 700) for alpha in (100, 300, 500, 700, 900)] + [
    (500, theta) for theta in (500, 600, 800, 900)
]
"""Alpha and theta in thousandths; 0.5 and 0.7 stand for both where the other is varied."""
PROOFS = 2000  # subscribers of each point whose proofs are made
VERIFIED = 200  # of these, sized and verified
_OWNER = Seed(bytes(32))
_START, _SECONDS, _FAN_OUT = 1_700_000_000, 300, 4


@dataclass(frozen=True)
class WorkloadSize:
    """How many subscriptions, how many messages in the interval, and the seed; `None`: they are given."""

    subscriptions: int
    messages: int
    seed: int | None


@dataclass(frozen=True)
class MatchingMeans:
    """What a way of matching took: shares are of all subscriptions, everything is a message's mean."""

    accessed: float
    """Met in the lists of messages."""
    on_the_way: float
    """Met in the lists of nodes, each node's shared by the messages below it."""
    candidates: float
    compared: float
    seconds: float
    """Of the processor."""


@dataclass(frozen=True)
class FigurePoint:
    """One alpha and theta: matching by each way, and proofs of those who are to get something."""

    alpha: int
    theta: int
    wanted: float
    """Share of all subscriptions that want a message, its mean."""
    ways: dict[str, MatchingMeans]
    proofs: ProofCosts | None


def measure(size: WorkloadSize, tell: Callable[[str], None]) -> Iterator[FigurePoint]:
    """Yield a point after the other; `tell` hears what is being done."""
    workload = Workload(np.random.default_rng(size.seed))
    tell(f"{size.messages:,} messages")
    feed = _feed(workload, size.messages)
    tell(f"{size.subscriptions:,} subscriptions")
    yield from _over_grid(feed, workload.crowd(size.subscriptions, feed.table), tell)


def measure_given(
    given: ProviderBatch, subscriptions: Sequence[LocatedSubscription], tell: Callable[[str], None]
) -> Iterator[FigurePoint]:
    """Yield points of a batch and subscriptions that somebody has, with alpha and theta of the grid.

    The batch is signed anew: signatures of a feed's own key are not to be had, and cost the same.
    """
    tell(f"{given.batch.body.count:,} messages and {len(subscriptions):,} subscriptions, given")
    body, weights = given.table.body, given.table.weights
    table = sign_table(_OWNER, body.version, weights, body.other, body.most, body.rule)
    messages = [replace(one.message, number=1) for one in entries_of(given.root)]
    feed = _signed(messages, table, given.batch.body.fan_out)
    yield from _over_grid(feed, crowd_by(table, subscriptions), tell)


def _over_grid(feed: ProviderBatch, crowd: Crowd, tell: Callable[[str], None]) -> Iterator[FigurePoint]:
    for number, (alpha, theta) in enumerate(GRID, 1):
        tell(f"{number} of {len(GRID)}: alpha {alpha / 1000}, theta {theta / 1000}")
        same = with_shares(crowd, shares=same_shares(alpha, theta, len(crowd)))
        yield _point(feed, same, (alpha, theta))


def _feed(workload: Workload, count: int) -> ProviderBatch:
    messages = workload.messages(count, 1)
    weights, other = idf(one.words for one in messages)
    table = sign_table(_OWNER, 1, weights, other, greatest_distance())
    return _signed(messages, table, _FAN_OUT)


def _signed(messages: Sequence[LocatedMessage], table: WeightTable, fan_out: int) -> ProviderBatch:
    whole = make_batch(_OWNER, BatchInterval(_START, _SECONDS, None), table, fan_out, messages)
    _, batch, root = read_batch(encode(whole))
    return ProviderBatch(batch, root, table)


def _point(feed: ProviderBatch, crowd: Crowd, at: tuple[int, int]) -> FigurePoint:
    engine = LocalEngine(crowd)
    entries = list(entries_of(feed.root))
    pairs = max(len(entries) * len(crowd), 1)
    served = np.zeros(len(crowd), np.int32)

    def serve(numbers: Numbers) -> None:
        served[numbers] += 1

    ways = {
        "SP": _timed(lambda work: engine.plain(entries, work), len(entries), pairs),
        "SP, settled": _timed(lambda work: engine.settled(entries, work), len(entries), pairs),
        "SP + IIP": _timed(lambda work: engine.pruned(feed.root, work), len(entries), pairs, serve),
    }
    some = np.flatnonzero(served)
    some = some[:: max(len(some) // PROOFS, 1)][:PROOFS]
    proofs = (
        measure_proofs(_OWNER, feed, [crowd.asked(int(one)) for one in some], VERIFIED) if len(some) else None
    )
    return FigurePoint(*at, int(served.sum(dtype=np.int64)) / pairs, ways, proofs)


def _timed(
    way: Callable[[MatchingWork], Iterable[tuple[TreeEntry, Numbers]]],
    messages: int,
    pairs: int,
    use: Callable[[Numbers], None] = lambda _: None,
) -> MatchingMeans:
    """Match all messages; what is done with those found does not count."""
    work = MatchingWork()
    seconds = 0.0
    began = process_time()
    for _, numbers in way(work):
        seconds += process_time() - began
        use(numbers)
        began = process_time()
    seconds += process_time() - began
    return MatchingMeans(
        work.accessed / pairs,
        work.on_the_way / pairs,
        work.candidates / pairs,
        work.compared / pairs,
        seconds / max(messages, 1),
    )
