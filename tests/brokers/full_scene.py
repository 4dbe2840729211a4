"""A tree of brokers for tests under full, and daemons at its edge brokers."""

from __future__ import annotations

from broker_daemons import Node, TreeOfDaemons

ROWS = (
    ("top", "inner", "root"),
    ("inner 1", "inner", "top"),
    ("inner 2", "inner", "top"),
    ("edge 1", "edge", "inner 1"),
    ("edge 2", "edge", "inner 1"),
    ("edge 3", "edge", "inner 2"),
)


async def started(network: TreeOfDaemons, edges: tuple[str, ...]) -> list[Node]:
    """Start a daemon at each of these edge brokers."""
    nodes = []
    for number, edge in enumerate(edges):
        node = network.node(f"at {edge} {number}")
        node.edge = network[edge].key
        await node.start()
        nodes.append(node)
    return nodes


SIX = ("edge 1", "edge 1", "edge 2", "edge 2", "edge 3", "edge 3")
