"""The tree of brokers: who is whose parent, signed by the root as a directory signs rosters.

Inner brokers have brokers below them, edge brokers have clients. A newer tree has a higher version; two
trees of one version are evidence against the root, and the second is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.versions.network_wire import BEGINNING, AnnouncedWire
from hushcast_protocol.base.wire import Bytes32, Counter, Lasting, PublicKey, decoder
from hushcast_protocol.brokers.network import BrokersNetwork

MAX_BROKERS = 1024  # in one tree: all of it goes over every link once a version
MAX_LEVELS = 8  # below the root: each hop adds a circuit's delay, and a disk
MAX_CHILDREN = 64  # brokers below one: each has a link that stays open
MAX_TREE = MAX_BROKERS * 192 + 1024  # bytes

BrokerRole = Literal["root", "inner", "edge"]


class BrokerPosition(Lasting, frozen=True, tag="seat"):
    """A broker's place in the tree; the root's has no parent."""

    key: PublicKey
    address: Annotated[str, msgspec.Meta(max_length=80)]
    role: BrokerRole
    parent: PublicKey | None


class TreeBody(Lasting, frozen=True, tag="broker-tree/1"):
    """What the root signs; every release reads it, as who is too old has nobody else to tell it."""

    network: Bytes32
    version: Counter
    seats: Annotated[tuple[BrokerPosition, ...], msgspec.Meta(min_length=1, max_length=MAX_BROKERS)]
    wire: AnnouncedWire = BEGINNING
    days_kept: Counter = 0
    """For how many days after its own the root keeps what is published, for those who ask; 0: not at all."""


@dataclass(frozen=True)
class ListedBroker:
    """A broker as the tree lists it."""

    key: PublicKey
    address: Address
    role: BrokerRole
    parent: PublicKey | None
    level: int
    """Brokers between it and the root, plus one; the root's is 0."""


@dataclass(frozen=True)
class BrokerTree:
    """A tree whose signature and form were checked."""

    signed: Signed
    version: int
    brokers: dict[PublicKey, ListedBroker]
    wire: AnnouncedWire = BEGINNING
    days_kept: int = 0

    @cached_property
    def digest(self) -> bytes:
        """Hash of the signed bytes, by which two ends of a link compare what they hold."""
        return digest(Domain.BROKER_TREE, self.signed.body)

    @property
    def edges(self) -> list[ListedBroker]:
        """The brokers that clients attach to."""
        return [broker for broker in self.brokers.values() if broker.role == "edge"]

    def children(self, key: PublicKey) -> list[ListedBroker]:
        """Return the brokers directly below one."""
        return [broker for broker in self.brokers.values() if broker.parent == key]

    def above(self, key: PublicKey) -> list[ListedBroker]:
        """Return the brokers above one that is listed, its parent first, the root last."""
        found = []
        parent = self.brokers[key].parent
        while parent is not None:
            found.append(self.brokers[parent])
            parent = self.brokers[parent].parent
        return found


_decode_tree: Callable[[bytes], TreeBody] = decoder(TreeBody, "tree", MAX_TREE)


def sign_tree(
    seed: Seed,
    network: BrokersNetwork,
    version: int,
    seats: Iterable[BrokerPosition],
    wire: AnnouncedWire = BEGINNING,
    days_kept: int = 0,
) -> Signed:
    """Sign a tree with the root's seed; raise `DecodeError` where it is none (`check_seats`)."""
    body = TreeBody(network.id, version, tuple(seats), wire, days_kept)
    check_seats(body.seats, network.root)
    return sign(seed, SignaturePurpose.BROKER_TREE, body)


def check_tree(signed: Signed, network: BrokersNetwork) -> BrokerTree:
    """Return the tree if the root signed it, it is of this network, and it is a tree.

    Raises `DecodeError` or `AuthenticationError`.
    """
    check(network.root, SignaturePurpose.BROKER_TREE, signed.body, signed.signature)
    body = _decode_tree(signed.body)
    if body.network != network.id:
        raise DecodeError("a tree is of another network")
    brokers = check_seats(body.seats, network.root)
    return BrokerTree(signed, body.version, brokers, body.wire, min(body.days_kept, MAX_DAYS_KEPT))


def check_newer(tree: BrokerTree, held: BrokerTree | None) -> bool:
    """Tell whether a tree is newer than the one held; raise `AuthenticationError` if the root signed two."""
    if held is None or tree.version > held.version:
        return True
    if tree.version == held.version and tree.digest != held.digest:
        raise AuthenticationError("the root signed two trees of one version")
    return False


def check_seats(seats: Iterable[BrokerPosition], root: PublicKey) -> dict[PublicKey, ListedBroker]:
    """Return the brokers by key; raise `DecodeError` unless all hang below the root, each once."""
    by_key: dict[PublicKey, BrokerPosition] = {}
    for seat in seats:
        if seat.key in by_key:
            raise DecodeError("a broker has two seats, or a second parent")
        by_key[seat.key] = seat
    if root not in by_key:
        raise DecodeError("the root is not in its tree")
    below: dict[PublicKey, int] = {}
    for seat in by_key.values():
        if (seat.key == root) is not (seat.role == "root") or (seat.key == root) is not (seat.parent is None):
            raise DecodeError("the root alone has no parent, and nobody else its role")
        if seat.parent is not None:
            parent = by_key.get(seat.parent)
            if parent is None or parent.role == "edge":
                raise DecodeError("a broker's parent is not in the tree, or is an edge broker")
            below[seat.parent] = below.get(seat.parent, 0) + 1
    if max(below.values(), default=0) > MAX_CHILDREN:
        raise DecodeError(f"a broker has more than {MAX_CHILDREN} below it")
    if len({seat.address for seat in by_key.values()}) < len(by_key):
        raise DecodeError("two brokers have the same address")
    return {
        seat.key: ListedBroker(
            seat.key, parse_address(seat.address), seat.role, seat.parent, _level(seat, by_key)
        )
        for seat in by_key.values()
    }


def _level(seat: BrokerPosition, by_key: dict[PublicKey, BrokerPosition]) -> int:
    level = 0
    while seat.parent is not None:
        seat = by_key[seat.parent]
        level += 1
        if level > MAX_LEVELS:
            raise DecodeError(f"brokers stand in a loop, or more than {MAX_LEVELS} below each other")
    return level
