"""Routes of messages: when messages pass their edges, and which of several arrivals a relay sends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hushcast_analytics.generator.draws import Floats, Words, uniform, words
from hushcast_analytics.generator.edges import DROPPED, Edges, find_edges
from hushcast_analytics.generator.presence import returns
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_epochs import forest
from hushcast_analytics.generator.tree_repair import Numbers
from hushcast_analytics.generator.tree_seats import subscribers
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY

SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # seconds to the next hop over an open link, as in simulations
BACK_WITHIN = 60.0  # seconds from a daemon's return until a relay that waits for it has reached it
SLICES, SLICE_BITS = 14, 44  # of a trail: each label sets one bit of each slice, as pybloom-live has it

OUTCOMES = ("forwarded", "duplicate", "unrouted", "loop")
FORWARDED, DUPLICATE, UNROUTED, LOOP = range(len(OUTCOMES))


@dataclass(frozen=True)
class DropArrays:
    """Messages of one topic and epoch as they enter the overlay: number, relay, seconds."""

    message: Numbers
    relay: Numbers
    time: Floats


@dataclass(frozen=True)
class ArrivalArrays:
    """Messages that came to relays; `previous` is `DROPPED` where they entered the overlay."""

    message: Numbers
    relay: Numbers
    previous: Numbers
    time: Floats
    outcome: Numbers
    popcount: Numbers


@dataclass(frozen=True)
class TransmissionArrays:
    """Messages for next hops; hops from `nodes` on are mailboxes.

    `asked` is when the relay wanted to send; it `waited` if the hop was away. Never sent is time infinity.
    """

    message: Numbers
    relay: Numbers
    hop: Numbers
    asked: Floats
    time: Floats
    waited: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DeliveryArrays:
    """Messages that came to subscribers (indices) for the first time."""

    message: Numbers
    subscriber: Numbers
    time: Floats


@dataclass(frozen=True)
class MailboxArrays:
    """Copies of messages that came to subscribers' (indices) mailboxes, by which relay; none as published."""

    message: Numbers
    subscriber: Numbers
    previous: Numbers
    time: Floats
    popcount: Numbers


@dataclass(frozen=True)
class RouteArrays:
    """What became of drops."""

    arrivals: ArrivalArrays
    transmissions: TransmissionArrays
    deliveries: DeliveryArrays
    copies: MailboxArrays


def route(asked: GeneratorScenario, topic: int, epoch: int, drops: DropArrays) -> RouteArrays:
    """Return what becomes of messages of one topic that are dropped in one epoch."""
    trees = forest(asked, topic, epoch)
    by_edge = asked.behaviour.edge_elements
    # Numbers of messages are large in the end, and keys are made of them.
    numbers, message = np.unique(drops.message, return_inverse=True)
    edges = find_edges(trees, by_edge, message, drops.relay)
    owners = np.concatenate([np.arange(asked.nodes), subscribers(asked, topic)])
    chance = (numbers[edges.edge_message], edges.edge_relay, edges.edge_hop)
    way = SHORTEST_WAY + (LONGEST_WAY - SHORTEST_WAY) * uniform(asked.seed, "way", topic, *chance)
    times = _Times(asked, edges, drops.time, way, owners, uniform(asked.seed, "back", topic, *chance))
    trails = _Trails(edges, times, _labels(asked, epoch))
    arrivals = _arrivals(edges, times, trails, drops, by_edge)
    seen, wished = np.isfinite(arrivals.time), np.isfinite(times.asked)
    sent = TransmissionArrays(
        numbers[edges.edge_message[wished]],
        edges.edge_relay[wished],
        edges.edge_hop[wished],
        times.asked[wished],
        times.sent[wished],
        times.asked[wished] != times.sent[wished],
    )
    mailboxes = np.isfinite(times.sent) & (edges.edge_hop >= asked.nodes)
    came, boxes = (times.sent + way)[mailboxes], edges.edge_hop[mailboxes] - asked.nodes
    if asked.listed:
        delivered = _to_listed(edges, times, subscribers(asked, topic))
    else:
        delivered = _first(edges.edge_message[mailboxes], boxes, came)
    of, subscriber, time = delivered
    return RouteArrays(
        ArrivalArrays(
            numbers[arrivals.message[seen]], arrivals.relay[seen], arrivals.previous[seen],
            arrivals.time[seen], arrivals.outcome[seen], arrivals.popcount[seen],
        ),
        sent,
        DeliveryArrays(numbers[of], subscriber, time),
        MailboxArrays(
            numbers[edges.edge_message[mailboxes]], boxes, edges.edge_relay[mailboxes], came,
            trails.popcount[mailboxes],
        ),
    )  # fmt: skip


class _Times:
    """The earliest time of everything: at gates, of edges being asked for and sent along."""

    def __init__(
        self,
        asked: GeneratorScenario,
        edges: Edges,
        dropped: Floats,
        way: Floats,
        owners: Numbers,
        back: Floats,
    ) -> None:
        onward = np.flatnonzero(edges.leads_to >= 0)
        self.edge = np.concatenate([np.full(len(dropped), DROPPED), onward])
        """The edge of each arrival, `DROPPED` for drops, which come first."""
        self.gate = np.concatenate([edges.drops_at, edges.leads_to[onward]])
        self.arrived = np.concatenate([dropped, np.full(len(onward), np.inf)])
        self.asked = self.sent = np.full(len(way), np.inf)
        at_gate, at_edge = _Groups(self.gate), _Groups(edges.opens_edge)
        while True:
            self.opened = at_gate.least(self.arrived)
            self.asked = at_edge.least(self.opened[edges.opens_gate])
            sent = _when_there(asked, owners[edges.edge_hop], self.asked, back)
            if np.array_equal(sent, self.sent):
                break
            self.sent = sent
            self.arrived = np.concatenate([dropped, (sent + way)[onward]])
        self.first_arrival = at_gate.first(self.arrived)
        self.opener = edges.opens_gate[at_edge.first(self.opened[edges.opens_gate])]
        """The gate whose arrival made a relay send along each edge."""


class _Groups:
    """Values by group, of which each number from 0 on has at least one."""

    def __init__(self, group: Numbers) -> None:
        self._order = np.argsort(group, kind="stable")
        ordered = group[self._order]
        self._begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
        self._group = group

    def least(self, values: Floats) -> Floats:
        """Return the least value of each group."""
        if not len(values):
            return values
        return np.minimum.reduceat(values[self._order], self._begins)

    def first(self, values: Floats) -> Numbers:
        """Return the index of a least value of each group."""
        order = np.lexsort((values, self._group))
        ordered = self._group[order]
        found: Numbers = order[np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)]]
        return found


def _when_there(asked: GeneratorScenario, daemon: Numbers, time: Floats, back: Floats) -> Floats:
    """Return when a message can go to a daemon: at once, on its return, or never if its day ends before."""
    if not asked.down:
        return time
    known = np.isfinite(time)
    epoch = np.where(known, time, 0.0) // EPOCH_SECONDS
    epoch = np.minimum(epoch.astype(np.int64), asked.epochs)
    returned = returns(asked)[daemon, epoch].astype(np.int64)
    day_ends = (epoch // EPOCHS_A_DAY + 1) * EPOCHS_A_DAY
    later = returned * float(EPOCH_SECONDS) + BACK_WITHIN * back
    found = np.where(returned == epoch, time, later)
    return np.where(known & (returned < np.minimum(day_ends, asked.epochs)), found, np.inf)


class _Trails:
    """The trails with which messages pass edges."""

    def __init__(self, edges: Edges, times: _Times, labels: Words) -> None:
        self.before = times.edge[times.first_arrival][times.opener]
        """The edge by which the message came that passes an edge; `DROPPED` where it had been dropped."""
        bits = labels[edges.edge_relay]
        above = self.before.copy()
        while np.any(above >= 0):
            further = above >= 0
            bits[further] |= bits[above[further]]
            above[further] = above[above[further]]
        self.popcount = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)

    def holds(self, edges: Edges, edge: Numbers, relay: Numbers) -> npt.NDArray[np.bool_]:
        """Tell whether messages that come by edges have passed a relay before."""
        found = np.zeros(len(edge), dtype=np.bool_)
        edge = edge.copy()
        while np.any(edge >= 0):
            on = edge >= 0
            found[on] |= edges.edge_relay[edge[on]] == relay[on]
            edge[on] = self.before[edge[on]]
        return found


@lru_cache(maxsize=2)
def _labels(asked: GeneratorScenario, epoch: int) -> Words:
    """Return the bits of each relay's trail label, one 64-bit word a slice."""
    relays, slices = np.arange(asked.nodes)[:, None], np.arange(SLICES)
    places = words(asked.seed, "label", epoch, relays, slices) % np.uint64(SLICE_BITS)
    labels: Words = np.uint64(1) << places
    return labels


def _arrivals(
    edges: Edges, times: _Times, trails: _Trails, drops: DropArrays, by_edge: bool
) -> ArrivalArrays:
    """Return all arrivals; of messages by the numbers that `edges` has."""
    relay = edges.gate_relay[times.gate]
    dropped = times.edge == DROPPED
    previous = np.where(dropped, DROPPED, edges.edge_relay[times.edge])
    opens = np.zeros(len(edges.gate_relay), dtype=np.bool_)
    if by_edge:
        opens[times.opener] = True
        outcome = np.where(opens[times.gate], FORWARDED, DUPLICATE)
    else:
        opens[edges.opens_gate] = True
        first = np.zeros(len(times.gate), dtype=np.bool_)
        first[times.first_arrival] = True
        looped = trails.holds(edges, times.edge, relay)
        outcome = np.where(looped, LOOP, DUPLICATE)
        outcome[first] = np.where(opens[times.gate[first]], FORWARDED, UNROUTED)
    popcount = (
        np.where(dropped, 0, trails.popcount[times.edge]) if len(trails.popcount) else np.zeros_like(relay)
    )
    return ArrivalArrays(edges.gate_message[times.gate], relay, previous, times.arrived, outcome, popcount)


def _to_listed(edges: Edges, times: _Times, roots: Numbers) -> tuple[Numbers, Numbers, Floats]:
    """Return deliveries to roots that are relays: with the first arrival, whatever way it took."""
    order = np.argsort(roots, kind="stable")
    place = np.minimum(np.searchsorted(roots[order], edges.gate_relay), len(roots) - 1)
    ended = (roots[order][place] == edges.gate_relay) & np.isfinite(times.opened)
    return edges.gate_message[ended], order[place[ended]], times.opened[ended]


def _first(message: Numbers, subscriber: Numbers, time: Floats) -> tuple[Numbers, Numbers, Floats]:
    order = np.lexsort((time, subscriber, message))
    message, subscriber, time = message[order], subscriber[order], time[order]
    first = np.r_[True, (message[1:] != message[:-1]) | (subscriber[1:] != subscriber[:-1])][: len(order)]
    return message[first], subscriber[first], time[first]
