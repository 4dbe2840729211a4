"""Observers: who may look on, and by which attacks each of them learns what."""

from __future__ import annotations

from typing import NamedTuple

LINKS, CLIENTS, BROKERS = "links", "clients", "brokers"
TOGETHER, ROOT, ROOT_AND_BROKERS = "brokers and clients", "root", "root and brokers"


class Observer(NamedTuple):
    """What one kind of observer has, and by which attacks it names an interest, a reader, a topic."""

    has: str
    interests: tuple[str, ...] = ()
    subscribers: str | None = None
    shares: str | None = None


_ALONE = ("dictionary", "pairs", "brokers")
"""`brokers` is whatever they open without a client (`layer_attacks.py`)."""

OBSERVERS = {
    LINKS: Observer(
        "counts what goes over the links of these brokers, and cannot look inside", shares="link-shares"
    ),
    CLIENTS: Observer("has what these clients read"),
    BROKERS: Observer(
        "has what these brokers have, and children that they make up", _ALONE, None, "traffic-shares"
    ),
    TOGETHER: Observer(
        "has what these brokers and clients have",
        (*_ALONE, "member-key", "consecutive", "broker-and-child", "anywhere"),
        "known-topic",
        "traffic-shares",
    ),
    ROOT: Observer("reads the words of all that is published and asked for, and not who asks"),
    ROOT_AND_BROKERS: Observer(
        "has what the root and these brokers have", (*_ALONE, "root-tells"), "root-tells", "traffic-shares"
    ),
}
