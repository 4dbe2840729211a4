"""Paths: which brokers lie between two in the tree."""

from __future__ import annotations

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree


def between(tree: BrokerTree, origin: PublicKey, target: PublicKey) -> tuple[PublicKey, ...] | None:
    """Return the brokers from one to another, both included; None where they are one, or not in the tree."""
    if origin == target or not {origin, target} <= tree.brokers.keys():
        return None
    up, down = _to_root(tree, origin), _to_root(tree, target)
    met = next(broker for broker in up if broker in down)
    return (*up[: up.index(met) + 1], *reversed(down[: down.index(met)]))


def _to_root(tree: BrokerTree, key: PublicKey) -> list[PublicKey]:
    return [key, *(broker.key for broker in tree.above(key))]
