"""Matching: what a broker knows under one privacy model. All else of a broker is the same under each.

`clear_matching.py` is the one of `clear`. `daemon.py` picks one by the network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.items import Item
from hushcast_protocol.brokers.tomography.broker_statements import Client
from hushcast_protocol.content.messages import Message

KEY = 32  # bytes of a child's key

Place = bytes
"""What of a message goes to a child: the child's key, and what tells this from more of it that goes there."""


def child_of(place: Place) -> PublicKey:
    """Return whose place it is."""
    return place[:KEY] if len(place) > KEY else place


class DroppedItems(NamedTuple):
    """Items that were dropped, by child and name."""

    below: Collection[tuple[PublicKey, bytes]]
    clients: Collection[tuple[PublicKey, bytes]]


class Interests(Protocol):
    """What the clients of an edge broker asked for, and what of it is shown."""

    @property
    def most_each(self) -> int:
        """Items of one client, at most."""

    @property
    def version(self) -> int:
        """The version upward of all that is shown now."""

    @property
    def least_k(self) -> int:
        """What the broker itself asks of each filter that it shows; 1: nothing."""

    def __len__(self) -> int:
        """The number of items, of all clients."""

    def of(self, client: PublicKey, /) -> Mapping[bytes, Any]:
        """Return what a client asked for, by its own names of 16 bytes."""

    def count(self, client: PublicKey, /) -> int:
        """Return how many items count as a client's."""

    def entries(self, client: PublicKey, /) -> Iterable[bytes]:
        """Return what a client compares with what it asked for: names, and names of items."""

    def exposed(self, client: PublicKey, /) -> Iterable[ExposureReport]:
        """Say how what a client asked for stands, where anything is asked of what is shown."""

    def note_there(self, client: PublicKey, is_there: bool, /) -> None:
        """Count a client in crowds, or, while it is away, do not."""

    def read(self, client: PublicKey, item: Item, /) -> Any:
        """Return what `subscribe` takes of an item; raise `Refusal` where it is none."""

    def load(self, client: PublicKey, name: bytes, item: Item, terms: AnonymityTerms, /) -> None:
        """Take what was accepted before a restart; raise `Refusal` where it is no item."""

    def subscribe(self, client: PublicKey, name: bytes, given: Any, terms: AnonymityTerms, /) -> int | None:
        """Take an item; return the version upward, or `None` if its level is too low for its terms."""

    def unsubscribe(self, client: PublicKey, name: bytes, /) -> int:
        """Forget an item, if there is one of this name; return the version upward."""

    def forget(self, client: PublicKey, /) -> None:
        """Count nothing of a client any more; `forget_some` forgets what it asked for."""

    def forget_some(self, client: PublicKey, most: int, /) -> Sequence[bytes]:
        """Forget so many items of a client; return their names, none if there are none left."""


class UnlayeredMatching:
    """What models have in common whose items and messages are the same whatever brokers stand above."""

    hands_up = False

    def forms(self, message: Message, places: Collection[Place]) -> Sequence[Message]:
        """Return the message as it is."""
        return (message,)

    def asked_again(self, child: PublicKey, names: Iterable[bytes]) -> None:
        """Do nothing: nothing comes again."""

    async def hand_up(self, child: PublicKey, message: Message) -> None:
        """Raise `Refusal`: whoever was a broker's parent knows itself for whom else a message is."""
        raise Refusal("form")

    def tree_changed(self) -> None:
        """Do nothing."""

    async def factors(self, child: PublicKey, ask: AskFactors) -> Factors:
        """Raise `Refusal`: there are none."""
        raise Refusal("form")


class Matching(Protocol):
    """What children asked for, whom a message is for and in which form, and what is shown of it."""

    hands_up: bool
    """Whether what waits for a broker that left the tree goes back to the root."""

    @property
    def advertised(self) -> ChildAdvertisements:
        """What brokers below have advertised."""

    @property
    def interests(self) -> Interests:
        """What clients have asked for."""

    def load(self, child: PublicKey, name: bytes, item: Item, /) -> None:
        """Take what a broker below had advertised before a restart; raise `Refusal` where it is none."""

    def advertise(self) -> int:
        """Show what changed of what brokers below have advertised; return the version upward."""

    def entering(self, message: Message, /) -> Message:
        """Return, at the root, a publication as it goes down; raise `PeerError` where it is none."""

    def whom(self, message: Message, /) -> Set[Place]:
        """Return whom a message is for; raise `DecodeError` where its tokens say nothing."""

    def forms(self, message: Message, places: Collection[Place], /) -> Sequence[Message]:
        """Return what goes to a child, whose `places` these are."""

    def asked_again(self, child: PublicKey, names: Iterable[bytes], /) -> None:
        """Hear that a broker below says items again that are routed to it."""

    async def hand_up(self, child: PublicKey, message: Message, /) -> None:
        """Take what a broker below hands up; durable on return. Raises `Refusal`."""

    def tree_changed(self) -> None:
        """Hear that the tree is another one."""

    def expire(self, now: float, /) -> Iterable[DroppedItems]:
        """Forget what was for days that have lapsed, in pieces; say which items."""

    def stated(self, is_edge: bool, /) -> Mapping[Filter, Sequence[Client]]:
        """Return what is stated to a tomography service."""

    @property
    def changes(self) -> int:
        """A number that grows whenever that, or what is in one row, may have changed."""

    async def begin(self) -> None:
        """Show what was asked for before a restart, before the parent hears anything."""

    async def run(self) -> None:
        """Do what takes its time, until cancelled."""

    async def linked(self, upstream: Upstream, /) -> None:
        """Ask the parent for what is needed, until the link ends."""

    async def factors(self, child: PublicKey, ask: AskFactors, /) -> Factors:
        """Answer a broker below; raise `Refusal`, or `TransportError` where nobody above is there to."""


class Rematching(Matching, Protocol):
    """Where what waited for a broker that left can be matched again by its parent."""

    def leaving(self, child: PublicKey, /) -> Callable[[Message], Mapping[PublicKey, Sequence[Message]]]:
        """Return what tells, once a broker below is dropped, whom what waited for it is for, and how."""
