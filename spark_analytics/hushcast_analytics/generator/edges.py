"""Edges that messages of one topic travel along, by the rules of the relays' routers.

The same rules as `overlay.forwarding`. Hardened, a relay sends a message on along the trees that
have the edge by which it came, and once to each next hop. As published (VB §4.2), it sends what is new to it
to all its next hops in all trees of the topic. Which edges a message takes does not depend on when.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcast_analytics.generator.tree_repair import NONE, Hops, Numbers

DROPPED = -1  # the previous hop of a message that enters the overlay


@dataclass(frozen=True)
class Edges:
    """What messages pass: gates, where relays look up next hops, and edges, from a relay to a next hop.

    A gate is a relay and the previous hop by which it looks up (`DROPPED` as published, where it makes
    no difference). `opens` are pairs of a gate and an edge it asks for. `drops_at` and `leads_to` are the
    gates of drops and of edges; an edge to a mailbox leads to none (−1).
    """

    gate_message: Numbers
    gate_relay: Numbers
    edge_message: Numbers
    edge_relay: Numbers
    edge_hop: Numbers
    opens_gate: Numbers
    opens_edge: Numbers
    drops_at: Numbers
    leads_to: Numbers


def find_edges(hops: Hops, by_edge: bool, message: Numbers, relay: Numbers) -> Edges:
    """Return the edges that messages take from where they are dropped.

    `hops` has a row a relay and a column a tree (`tree_epochs.forest`). `message` and `relay` say which
    message is dropped where; one may be dropped at several relays. `by_edge` tells whether the previous hop
    counts.
    """
    relays = hops.shape[0]
    keys = _Keys(relays, relays + hops.shape[1])
    all_hops = _Distinct(hops)
    drops = keys.gate(message, relay, np.full(len(relay), DROPPED))
    fresh = known = np.unique(drops)
    opened, asked = [], []
    while len(fresh):
        if by_edge:
            which, hop = _along_trees(hops, *keys.of_gate(fresh)[1:])
        else:
            which, hop = all_hops.of(keys.of_gate(fresh)[1])
        of, at, _ = keys.of_gate(fresh)
        opened.append(fresh[which])
        asked.append(keys.edge(of[which], at[which], hop))
        found = np.unique(asked[-1])
        of, at, hop = keys.of_edge(found)
        found = keys.gate(of, hop, at if by_edge else np.full(len(at), DROPPED))[hop < relays]
        fresh = np.setdiff1d(found, known)
        known = np.union1d(known, fresh)
    edges, opens_edge = np.unique(np.concatenate(asked or [drops[:0]]), return_inverse=True)
    of, at, hop = keys.of_edge(edges)
    ends = keys.gate(of, np.minimum(hop, relays - 1), at if by_edge else np.full(len(at), DROPPED))
    gate_message, gate_relay, _ = keys.of_gate(known)
    return Edges(
        gate_message,
        gate_relay,
        of,
        at,
        hop,
        np.searchsorted(known, np.concatenate(opened or [drops[:0]])),
        opens_edge,
        np.searchsorted(known, drops),
        np.where(hop < relays, np.searchsorted(known, ends), -1),
    )


class _Keys:
    """Gates and edges as single numbers, in which they can be sorted and compared at once."""

    def __init__(self, relays: int, hops: int) -> None:
        self._relays, self._hops = relays, hops

    def gate(self, message: Numbers, relay: Numbers, previous: Numbers) -> Numbers:
        return (message * self._relays + relay) * (self._relays + 1) + previous + 1

    def of_gate(self, key: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        place, previous = np.divmod(key, self._relays + 1)
        return *np.divmod(place, self._relays), previous - 1

    def edge(self, message: Numbers, relay: Numbers, hop: Numbers) -> Numbers:
        return (message * self._relays + relay) * self._hops + hop

    def of_edge(self, key: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        place, hop = np.divmod(key, self._hops)
        return *np.divmod(place, self._relays), hop


class _Distinct:
    """The distinct next hops of each relay, over all trees."""

    def __init__(self, hops: Hops) -> None:
        ordered = np.sort(hops, axis=1)
        fresh = np.ones(ordered.shape, dtype=np.bool_)
        fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        fresh &= ordered != NONE
        self._hops = ordered[fresh].astype(np.int64)
        self._counts = fresh.sum(axis=1)
        self._begins = np.cumsum(self._counts) - self._counts

    def of(self, relay: Numbers) -> tuple[Numbers, Numbers]:
        """Return pairs of an index into `relay` and a next hop."""
        counts = self._counts[relay]
        which = np.repeat(np.arange(len(relay)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, self._hops[self._begins[relay][which] + within]


def _along_trees(hops: Hops, relay: Numbers, previous: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs of an index into `relay` and a next hop in a tree in which `previous` sends to it."""
    asked = (hops[previous] == relay[:, None]) | (previous == DROPPED)[:, None]
    which, tree = np.nonzero(asked)
    return which, hops[relay[which], tree].astype(np.int64)
