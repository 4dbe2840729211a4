"""What a testnet daemon observes: a type for each kind of line in `trace.Observation`.

An adversary who ran the daemon would know all of it. A type's name, in small letters, is the kind of line,
and its fields are the line's. Keys, ids and tokens are bytes here, hex in a trace; `size` is in bytes, of the
body or the parcel; `day` is the one that a lease or a key is for; `next` and `previous` are keys of relays,
boxes, brokers, or of a client at its edge broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Drop(NamedTuple):
    """An anonymous publisher dropped a message here."""

    message: bytes
    tokens: tuple[bytes, ...]
    size: int


class Received(NamedTuple):
    """A message came from a relay or, if there is none, from an anonymous publisher.

    `outcome` is what routing decided, `popcount` the number of bits set in the trail as it came.
    """

    message: bytes
    tokens: tuple[bytes, ...]
    previous: bytes | None
    outcome: str
    popcount: int
    size: int


class Sent(NamedTuple):
    """A message went to a next hop."""

    message: bytes
    tokens: tuple[bytes, ...]
    next: bytes


class Unreached(NamedTuple):
    """A next hop could not be reached."""

    next: bytes


class Delivered(NamedTuple):
    """A message of a subscription came to this daemon, and opened."""

    message: bytes
    tokens: tuple[bytes, ...]
    size: int


class Arrived(NamedTuple):
    """A copy of a message came from a box of this daemon's.

    By the host `previous`; `popcount` is the number of bits set in the trail as it came.
    """

    message: bytes
    tokens: tuple[bytes, ...]
    previous: bytes
    popcount: int
    size: int


class Parcel(NamedTuple):
    """A parcel was opened, with so many others inside."""

    size: int
    children: int


class Installed(NamedTuple):
    """A lease was installed; `previous` is the relay that handed it in, absent if it was dropped.

    By its `mark` it can be tested for a topic whose trunk is known. `elements` are those of its route,
    `children` the parcels passed on.
    """

    lease: bytes
    mark: bytes
    day: int
    next: bytes
    previous: bytes | None
    elements: int
    children: int


class Passed(NamedTuple):
    """A parcel of an instruction went to the relay it was sealed for."""

    lease: bytes
    next: bytes


class Withdrawn(NamedTuple):
    """A lease was withdrawn."""

    lease: bytes


class Pruned(NamedTuple):
    """A lease was dropped because its next hop has no such route."""

    lease: bytes
    next: bytes


class Roster(NamedTuple):
    """A roster came, with so many relays; the first of them says whom it lists.

    On a day with shards the first relay of each says whom that one lists.
    """

    relays: int
    listed: Sequence[bytes] | None
    shard: int | None = None


class Attached(NamedTuple):
    """The owner of a box, `next`, attached to this relay, its host."""

    next: bytes


class Detached(NamedTuple):
    """The link of a box's owner ended, and no other had come in its place."""

    next: bytes


class Introduced(NamedTuple):
    """A pseudonym was made known to a proxy, or to the server, to `publish` or to `subscribe`."""

    pseudonym: bytes
    use: str


class Registered(NamedTuple):
    """A deliveries proxy passed on, or the server took, a pseudonym's request for tokens.

    Tokens, here and below, are under the server's key, as server and proxy both have them, in their order.
    """

    pseudonym: bytes
    serial: int
    tokens: tuple[bytes, ...]


class Handed(NamedTuple):
    """A publications proxy passed on, or the server took, a publication.

    The server has its key, so it has the message's id, and whether the body is `readable` with that key and
    what is public. A proxy has neither. `payload` is 16 bytes of the hash of what is sealed, as it passed.
    """

    message: bytes | None
    pseudonym: bytes
    tokens: tuple[bytes, ...]
    payload: bytes
    size: int
    readable: bool | None = None


class Dispatched(NamedTuple):
    """The server sent, or a deliveries proxy passed on, a delivery; `message` and `payload` as above."""

    message: bytes | None
    pseudonym: bytes
    payload: bytes
    size: int


class Advertised(NamedTuple):
    """A broker showed filters to its parent, or withdrew some; seen by itself, or, as of its `child`, there.

    `show` are the filters as they went over the link, `withdraw` the names of those that are shown no more.
    """

    child: bytes | None
    show: tuple[bytes, ...]
    withdraw: tuple[bytes, ...]


class Asked(NamedTuple):
    """An edge broker took a client's subscription, its filter as it came over the link, and its terms.

    `k` subscribers are to stand behind it; `condition` says who counts, `otherwise` what is done while they
    are fewer.
    """

    client: bytes
    name: bytes
    filter: bytes
    k: int
    condition: str
    otherwise: str


class Bogus(NamedTuple):
    """An edge broker vouches for another number of bogus sources behind a client's subscription."""

    client: bytes
    name: bytes
    sources: int


class Ended(NamedTuple):
    """An edge broker forgot a client's subscription."""

    client: bytes
    name: bytes


class Agreed(NamedTuple):
    """Two ends agreed on the key of a layer for a day: `own` and `other` are their X25519 keys.

    `key` is what both add to, or take off, elements; the lab strips layers with it as colluders would.
    """

    day: int
    own: bytes
    other: bytes
    key: bytes


class Compared(NamedTuple):
    """A broker was given the factor, `key`, for a `path` of layers, as they go over links.

    It brings elements that are left under the path under one key, in which the broker compares all.
    """

    day: int
    path: bytes
    key: bytes


class Opened(NamedTuple):
    """A message came to a client of a broker, and what is `inside` has another id."""

    message: bytes
    inside: bytes


# The order is that of columns in tables, and of fields in a line: each type's new fields follow those before.
class Carried(NamedTuple):
    """So many bytes passed on the line between a daemon and the Tor network, from it if `upward`, else to it.

    An observer outside saw that, who reads nothing; `line` is the daemon's name in the testnet.
    """

    line: str
    upward: bool
    size: int


Observed = (
    Received
    | Drop
    | Sent
    | Unreached
    | Delivered
    | Arrived
    | Installed
    | Parcel
    | Passed
    | Withdrawn
    | Pruned
    | Roster
    | Introduced
    | Registered
    | Handed
    | Dispatched
    | Advertised
    | Asked
    | Bogus
    | Ended
    | Agreed
    | Compared
    | Opened
    | Attached
    | Detached
    | Carried
)
