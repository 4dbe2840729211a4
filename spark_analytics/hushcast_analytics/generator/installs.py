"""Installs: how the instructions of one tree come down to its relays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcast_analytics.generator.asked import EPOCH_SECONDS, Asked
from hushcast_analytics.generator.draws import Floats, uniform
from hushcast_analytics.generator.publications import DROP_WAYS
from hushcast_analytics.generator.routes import LONGEST_WAY, SHORTEST_WAY
from hushcast_analytics.generator.seats import Numbers, plan

# Bytes of sealed parcels as `protocol/hushcast_protocol/parcels.py` makes them; a test compares.
LEAF = 259  # one element, nothing to pass on
ELEMENT = 18
CONSENT = 187  # of a mailbox, to a relay at the top
ONWARD, LONG_ONWARD, LONGER_ONWARD = 44, 1, 2  # around a parcel inside; more above 255 bytes and 65,535
MANY = 15  # elements or parcels, above which their list takes two bytes more
LONG_LIST = 2


@dataclass(frozen=True)
class Installs:
    """The seats of one tree, those next to the root first; `hop` as in `seats.plan`, `moment` in seconds."""

    relay: Numbers
    hop: Numbers
    level: Numbers
    children: Numbers
    elements: Numbers
    size: Numbers
    moment: Floats


def begins(asked: Asked, topic: int, term: int, subscriber: int) -> float:
    """Return when a subscription begins to install its tree for a term (seconds): at a moment of its own."""
    chance = float(uniform(asked.seed, "installs", topic, term, subscriber))
    if term == 0:
        return chance * EPOCH_SECONDS / 8
    # Between half and a quarter of a day, or of an epoch as published, before it is needed.
    length = asked.term_epochs * EPOCH_SECONDS
    return length * (term - 0.25 - 0.25 * chance)


def install(asked: Asked, topic: int, term: int, subscriber: int) -> Installs:
    """Return how the tree of a subscriber is installed for a term, from its top relays down."""
    hops, levels = plan(asked, topic, term, subscriber)
    seated = np.flatnonzero(levels)
    seated = seated[np.argsort(levels[seated], kind="stable")]
    children = np.bincount(hops[seated][levels[seated] > 1], minlength=asked.nodes)
    by_edge = asked.behaviour.edge_elements
    # Messages enter at any relay, once more around what is lost, and come from each child.
    elements = 1 + int(asked.behaviour.detours) + by_edge * children
    way = SHORTEST_WAY + (LONGEST_WAY - SHORTEST_WAY) * uniform(
        asked.seed, "parcel", topic, term, subscriber, np.arange(asked.nodes)
    )
    moment = DROP_WAYS * way  # each level shakes hands anew
    size = (
        LEAF + ELEMENT * (elements - 1) + LONG_LIST * ((elements > MANY).astype(np.int64) + (children > MANY))
    )
    if by_edge:
        size = size + CONSENT * (levels == 1)
    for level in range(2, asked.behaviour.depth + 1):
        at = seated[levels[seated] == level]
        moment[at] += moment[hops[at]]
    moment += begins(asked, topic, term, subscriber)
    for level in range(asked.behaviour.depth, 1, -1):
        at = seated[levels[seated] == level]
        inside = size[at] + ONWARD + LONG_ONWARD * (size[at] > 0xFF) + LONGER_ONWARD * (size[at] > 0xFFFF)
        np.add.at(size, hops[at], inside)
    return Installs(
        seated, hops[seated], levels[seated], children[seated], elements[seated], size[seated], moment[seated]
    )
