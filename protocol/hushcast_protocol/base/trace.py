"""Traces: what a testnet daemon observed, and the ground truth beside it, as JSON lines for analysis.

Observations are what an adversary who ran the daemon would know; the truth is what only the owner knows. They
go to separate files, `<node>.observations.jsonl` and `<node>.truth.jsonl`. Needs the standard library alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

SCHEMA = 4

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Observation:
    """One thing that one daemon saw. Byte strings are hex; what does not apply is absent."""

    node: str  # the identity key of a relay, server, proxy or broker, or a client's name in the testnet
    time: float  # seconds since the testnet's beginning
    epoch: int
    kind: Literal[
        "drop",
        "received",
        "sent",
        "unreached",  # a next hop could not be reached
        "delivered",
        "parcel",
        "installed",
        "passed",  # a parcel of the instruction, to the relay it was sealed for
        "withdrawn",
        "pruned",  # a next hop knew of no route
        "roster",
        "introduced",  # the central system, from here on
        "registered",
        "handed",
        "dispatched",
        "advertised",  # brokers, from here on
        "asked",
        "bogus",
        "ended",
        "agreed",
        "compared",
        "opened",
    ]
    message: str | None = None  # id
    tokens: tuple[str, ...] | None = None
    previous: str | None = None  # key of the relay it came from; absent where the link was anonymous
    next: str | None = None  # next hop's key: relay, mailbox, broker, or a client at its edge broker
    outcome: str | None = None  # the routing decision on a message received
    popcount: int | None = None  # bits set in the trail as received
    size: int | None = None  # bytes of the body or parcel
    lease: str | None = None  # id
    mark: str | None = None  # of the lease, by which it can be tested for a topic whose trunk is known
    day: int | None = None  # for which the lease, or the key, is
    elements: int | None = None  # route elements in the lease
    children: int | None = None  # parcels passed on
    relays: int | None = None  # in the roster
    listed: tuple[str, ...] | None = (
        None  # who they are: a roster is public, so its first relay alone writes it, or that of each shard
    )
    shard: int | None = None  # that the listed are in, on a day with several
    pseudonym: str | None = None
    use: str | None = None  # of a pseudonym: publish or subscribe
    serial: int | None = None  # of a pseudonym's request for tokens
    payload: str | None = None  # hash of what is sealed
    readable: bool | None = None  # whether the body opens with the server's key and what is public
    child: str | None = None  # key of the broker that showed filters; absent where it is this one
    show: tuple[str, ...] | None = None  # filters, as they went over the link
    withdraw: tuple[str, ...] | None = None  # names of filters that are shown no more
    client: str | None = None  # key of a client at its edge broker
    name: str | None = None  # of a client's subscription
    filter: str | None = None  # of it, as it came over the link
    k: int | None = None  # subscribers that are to stand behind it
    condition: str | None = None  # who counts
    otherwise: str | None = None  # what is done while they are fewer
    own: str | None = None  # X25519 key of this end of a layer, for a day
    other: str | None = None  # of the other end
    key: str | None = None  # of a layer, or a factor for a path
    path: str | None = None  # of layers, as they go over a link
    inside: str | None = None  # id of the message inside another
    sources: int | None = None  # bogus ones behind a client's subscription


@dataclass(frozen=True)
class Truth:
    """One thing that only the daemon that did it knows."""

    node: str
    time: float
    epoch: int
    kind: Literal[
        "started",
        "stopped",
        "subscribed",
        "installed",
        "unsubscribed",
        "published",
        "delivered",
        "gap",
        "introduced",  # the central system, from here on
        "registered",
        "handed",
        "wanted",  # brokers, from here on
        "attached",
        "invented",
    ]
    role: str | None = None
    profile: str | None = None  # under which the daemon runs
    topic: str | None = None
    message: str | None = None
    origins: tuple[str, ...] | None = None  # relays that gave a receipt
    took: float | None = None  # seconds from the request to publish to `time`, when the last receipt came
    mailbox: str | None = None  # its key; the first pseudonym; with brokers the subscription's name
    day: int | None = None
    depth: int | None = None
    tree: dict[str, str | None] | None = None  # each relay's next hop, null for the root
    tokens: tuple[str, ...] | None = None
    pseudonym: str | None = None
    use: str | None = None  # of a pseudonym: publish or subscribe
    serial: int | None = None  # of a pseudonym's request for tokens
    payload: str | None = None  # hash of what is sealed
    item: str | None = None  # name of what asks for a word under layers
    own: str | None = None  # X25519 key that those above know the daemon by on that day
    element: str | None = None  # of the word, under no layer
    client: str | None = None  # key by which its edge broker knows the daemon
    by: str | None = None  # key of the broker that made up this child


def to_line(record: Observation | Truth) -> str:
    """Return a record as one JSON line without its line end."""
    # No field holds a dataclass: `asdict`, which copies each value, took nine times as long.
    fields = {name: value for name, value in vars(record).items() if value is not None}
    return _encode({"schema": SCHEMA, **fields})
