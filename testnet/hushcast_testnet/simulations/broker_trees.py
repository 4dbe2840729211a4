"""Trees of brokers to simulate: the usual small one, or one in which each broker has so many children."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.broker_tree import MAX_BROKERS, MAX_CHILDREN, MAX_LEVELS, BrokerRole
from hushcast_testnet.layouts import broker_names, edge_of

Named = tuple[str, BrokerRole, str]
"""A broker's name, its role, and its parent's name."""


@dataclass(frozen=True)
class BrokerTreeShape:
    """Which brokers there are, from the root down, and at which edge broker each client is."""

    brokers: tuple[Named, ...]
    edges: tuple[str, ...]
    """One for each client, in their order."""


def small(clients: int, edges: int) -> BrokerTreeShape:
    """Return the tree of testnets: two inner brokers, and edge brokers in turn."""
    brokers = broker_names(edges)
    names = [name for name, role, _ in brokers if role == "edge"]
    return BrokerTreeShape(tuple(brokers), tuple(names[edge_of(number, edges)] for number in range(clients)))


def fanned(clients: int, fan_out: int, levels: int) -> BrokerTreeShape:
    """Return a tree in which brokers have `fan_out` children each, but for the last of each level.

    There are at least so many `levels` below the root: as many as a word has layers, so that the root's is
    none of a client's. Raises `UsageError` where the tree is too large.
    """
    sizes = [ceil(clients / fan_out)]
    while len(sizes) < levels or sizes[-1] > fan_out:
        sizes.append(ceil(sizes[-1] / fan_out))
    if fan_out > MAX_CHILDREN or len(sizes) > MAX_LEVELS or sum(sizes) + 1 > MAX_BROKERS:
        raise UsageError(
            f"--fan-out {fan_out}: {clients} clients take {sum(sizes) + 1} brokers on {len(sizes)} levels;"
            f" a tree has {MAX_BROKERS}, {MAX_LEVELS} levels and {MAX_CHILDREN} below one at most"
        )
    brokers: list[Named] = [("root", "root", "")]
    above = ["root"]
    for level in reversed(range(len(sizes))):
        kind: BrokerRole = "inner" if level else "edge"
        names = [f"{kind}-{level}-{n + 1}" if level else f"edge-{n + 1}" for n in range(sizes[level])]
        brokers += [(name, kind, above[n // fan_out]) for n, name in enumerate(names)]
        above = names
    return BrokerTreeShape(tuple(brokers), tuple(above[number // fan_out] for number in range(clients)))
