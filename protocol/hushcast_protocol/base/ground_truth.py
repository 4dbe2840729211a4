"""Backend truth, which only the acting daemon knows: a type for each kind of line in `trace.Truth`.

A type's name, in small letters, is the kind of line, and its fields are the line's. Keys, ids and tokens are
bytes here, hex in a trace. A `mailbox` is the key of a subscription's box; as published, and with brokers,
the name of a subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Started(NamedTuple):
    """A daemon began to serve.

    As `relay` or `client`; in the central system as `client`, `server`, or with a proxy's role,
    `publications` or `deliveries`; of brokers as `client`, `root`, `inner` or `edge`, or as `broker` before
    it has a seat.
    """

    role: str
    profile: str


class Stopped(NamedTuple):
    """A daemon ended as it should."""


class Subscribed(NamedTuple):
    """A subscription began."""

    topic: str
    mailbox: bytes


class Installed(NamedTuple):
    """A tree towards a mailbox is being installed: each relay's next hop, `None` for the root."""

    topic: str
    mailbox: bytes
    day: int
    depth: int
    tree: Mapping[bytes, bytes | None]
    tokens: tuple[bytes, ...]


class Unsubscribed(NamedTuple):
    """A subscription ended."""

    topic: str
    mailbox: bytes


class Published(NamedTuple):
    """A publication was handed over to `origins`; the last receipt came `took` seconds after the request."""

    topic: str
    message: bytes
    origins: Sequence[bytes]
    took: float


class Delivered(NamedTuple):
    """A message was put into an inbox."""

    topic: str
    message: bytes


class Gap(NamedTuple):
    """Another subscriber reports a message that did not come."""

    topic: str
    message: bytes


class Introduced(NamedTuple):
    """A pseudonym was drawn, to `publish` or to `subscribe`; for one topic, or for all that come."""

    pseudonym: bytes
    use: str
    topic: str | None


class Registered(NamedTuple):
    """The request with this serial asked for a topic's messages, for this pseudonym."""

    topic: str
    pseudonym: bytes
    serial: int


class Handed(NamedTuple):
    """A message was handed to a publications proxy, sealed as `payload` (16 bytes of its hash)."""

    message: bytes
    pseudonym: bytes
    payload: bytes


class Attached(NamedTuple):
    """A daemon is known to its edge broker by this key."""

    client: bytes


class Wanted(NamedTuple):
    """A subscription asked for a word of a topic on a day, by the `item` of this name.

    `own` is the X25519 key that those above know the daemon by, `element` what is under the item's layers.
    """

    topic: str
    day: int
    item: bytes
    own: bytes
    element: bytes


class Invented(NamedTuple):
    """A child that a broker makes up: what its operator had by it is written under the child's key."""

    by: bytes


class Named(NamedTuple):
    """What the testnet calls this daemon, and an observer of links its line."""

    name: str


# The order is that of columns in tables, and of fields in a line: each type's new fields follow those before.
GroundTruth = (
    Started
    | Stopped
    | Subscribed
    | Installed
    | Unsubscribed
    | Published
    | Delivered
    | Gap
    | Introduced
    | Registered
    | Handed
    | Wanted
    | Attached
    | Invented
    | Named
)
