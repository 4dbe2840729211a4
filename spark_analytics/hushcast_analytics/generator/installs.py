"""Installs: how instructions come down a tree to those relays that are told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcast_analytics.generator.draws import Floats, uniform
from hushcast_analytics.generator.message_routes import LONGEST_WAY, SHORTEST_WAY
from hushcast_analytics.generator.publications import DROP_WAYS
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.generator.tree_epochs import SeatAnnouncement
from hushcast_analytics.generator.tree_repair import NONE, Hops, Numbers, levels, loads
from hushcast_analytics.generator.tree_seats import root_of

# Bytes of sealed parcels as `protocol/hushcast_protocol/overlay/parcels.py` makes them; a test compares.
LEAF = 278  # one element, nothing to pass on, no stamp
ELEMENT = 18
HOST_CARD = 235  # more than a relay as next hop takes, to a relay at the top
ONWARD, LONG_ONWARD, LONGER_ONWARD = 44, 1, 2  # around a parcel inside; more above 255 bytes and 65,535
MANY = 15  # elements or parcels, above which their list takes two bytes more
LONG_LIST = 2


@dataclass(frozen=True)
class Installs:
    """Relays that are told of their seats together; `above` is who hands the parcel on, `NONE` if dropped.

    Those above come first. `hop` is as in `tree_seats.drawn`, `moment` in seconds.
    """

    relay: Numbers
    hop: Hops
    above: Hops
    children: Numbers
    elements: Numbers
    size: Numbers
    moment: Floats


def install(
    asked: GeneratorScenario, topic: int, day: int, subscriber: int, telling: SeatAnnouncement
) -> Installs:
    """Return how relays are told, down the tree; those above whom nobody is told get a drop of their own."""
    hops, told = telling.hops, np.append(telling.told, False)
    root = root_of(asked, topic, subscriber)
    on_the_way = told[np.minimum(hops, asked.nodes)]
    way_down = np.where(telling.told, np.where(on_the_way, hops, root), NONE)
    level = levels(way_down, root)
    relay = np.argsort(level, kind="stable")
    relay = relay[level[relay] > 0]
    children, senders = loads(way_down), loads(hops)
    by_edge = asked.behaviour.edge_elements
    # Messages enter at any relay, once more around what is lost, and come from each child.
    elements = 1 + int(asked.behaviour.detours) + by_edge * senders
    way = SHORTEST_WAY + (LONGEST_WAY - SHORTEST_WAY) * uniform(
        asked.seed, "parcel", topic, day, subscriber, int(telling.moment), np.arange(asked.nodes)
    )
    moment = DROP_WAYS * way  # each level shakes hands anew
    size = (
        LEAF + ELEMENT * (elements - 1) + LONG_LIST * ((elements > MANY).astype(np.int64) + (children > MANY))
    )
    if not asked.listed:
        size = size + HOST_CARD * (hops == root)
    deepest = int(level.max(initial=0))
    for below in range(2, deepest + 1):
        at = np.flatnonzero(level == below)
        moment[at] += moment[hops[at]]
    moment += telling.moment
    for below in range(deepest, 1, -1):
        at = np.flatnonzero(level == below)
        inside = size[at] + ONWARD + LONG_ONWARD * (size[at] > 0xFF) + LONGER_ONWARD * (size[at] > 0xFFFF)
        np.add.at(size, hops[at], inside)
    above = np.where(level > 1, hops, NONE)
    return Installs(
        relay, hops[relay], above[relay], children[relay], elements[relay], size[relay], moment[relay]
    )
