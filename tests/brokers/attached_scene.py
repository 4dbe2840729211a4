"""A small tree of brokers for tests, and which broker of it a daemon attaches to."""

from __future__ import annotations

from broker_daemons import Node, TreeOfDaemons
from small_tree import Member

ROWS = (("inner", "inner", "root"), ("edge 1", "edge", "inner"), ("edge 2", "edge", "inner"))


def edge_of(network: TreeOfDaemons, node: Node) -> Member:
    """The broker that a daemon attaches to."""
    edge = node.daemon.brokers.edge()
    assert edge is not None
    return next(member for member in network.members if member.key.hex() == edge["broker"])


def other_than(network: TreeOfDaemons, edge: Member) -> Member:
    return next(member for member in network.edges if member is not edge)


def held_at(edge: Member) -> int:
    return int(edge.status("filters"))


def edge_of_is_other(network: TreeOfDaemons, node: Node, edge: Member) -> bool:
    return node.daemon.brokers.edge()["broker"] != edge.key.hex()  # type: ignore[index]
