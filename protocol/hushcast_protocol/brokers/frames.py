"""Frames of brokers: what a child says to its parent and the parent to it, and publishers to the root.

The child opens the link, under its own name, and keeps it. It is a broker that the tree lists below the
parent, or a client of an edge broker, whose key is its own draw. Messages go down, filters go up. Each
request has a serial, higher than those before on this link. It is answered once it is durable, and once
whatever it changes above is confirmed there: who hears `accepted` gets all that the root takes from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY, ProofOfWork
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, PublicKey, Wire, decoder
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.broker_tree import MAX_TREE
from hushcast_protocol.brokers.clear_words import CoveredFilter, ShownFilter
from hushcast_protocol.brokers.community.charter import MAX_CHARTER, MAX_COMMUNITIES
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.items import Item
from hushcast_protocol.content.messages import MAX_BODY, Message

MAX_IN_ONE = 256  # filters in one advertisement; a table goes up in as many as it takes
MAX_K = 1_000_000  # subscribers that a filter may be asked to hide among
MAX_BROKER_FRAME = MAX_BODY + 4096  # bytes; a message, an advertisement (at most 64 kB), a tree or a charter
assert max(MAX_TREE, MAX_CHARTER) <= MAX_BROKER_FRAME

BrokerVerdict = Literal[
    "accepted",
    "form",  # it is not what the protocol allows
    "day",  # its day is not open
    "quota",  # there is no room
    "stamp",  # it costs work, and came without
    "bogus",  # it would take bogus filters, and here they would deceive nobody
    "level",  # too few subscribers stand behind the filter, and it was not to be shown otherwise
    "unknown",  # nobody listed or joined here
    "community",  # whoever would have to be in the community is not
    "tree",  # its layers are for brokers that do not stand above: its sender holds another tree
]


# A child to its parent.


class Advertise(Wire, frozen=True, tag="advertise"):
    """A broker: route what these filters match to me, too, and what those that are named (`remove`) no more.

    What is added takes effect first. A whole table goes up in `part`s and an `end`: what none of these had is
    dropped with the last. Outside of one, an item that is routed already says that somebody joined it.
    """

    serial: Counter
    add: Annotated[tuple[Item, ...], msgspec.Meta(max_length=MAX_IN_ONE)]
    remove: Annotated[tuple[Bytes16, ...], msgspec.Meta(max_length=MAX_IN_ONE)]
    whole: Literal["no", "part", "end"]


class HandUp(Wire, frozen=True, tag="hand-up"):
    """A broker: this came for a broker that has left; under the labels that it came here under."""

    serial: Counter
    message: Message


class Join(Wire, frozen=True, tag="join"):
    """A client that this edge broker does not know."""

    serial: Counter
    stamp: ProofOfWork | None


class AnonymityTerms(Wire, frozen=True, tag="terms"):
    """How many subscribers are to stand behind what is shown of a filter; k = 1 asks for nothing."""

    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_K)]
    condition: AnonymityCondition
    otherwise: Fallback


class Subscribe(Wire, frozen=True, tag="broker-subscribe"):
    """A client: send me what this filter matches. Again under the same name, it replaces the one before."""

    serial: Counter
    name: Bytes16
    filter: Item
    terms: AnonymityTerms


class Unsubscribe(Wire, frozen=True, tag="unsubscribe"):
    """A client: send me nothing more for this."""

    serial: Counter
    name: Bytes16


class Ack(Wire, frozen=True, tag="broker-ack"):
    """The answer to messages: all up to this number on this link (from 1) are durable."""

    number: Counter


class Ping(Wire, frozen=True, tag="broker-ping"):
    """Show a sign of life, or see whether anybody is there."""


class KnownCharter(Wire, frozen=True, tag="known-charter"):
    """The newest epoch that somebody knows of a community."""

    community: PublicKey
    epoch: Counter


class AskCharters(Wire, frozen=True, tag="ask-charters"):
    """Say all charters that are newer than these, or of other communities; and, to a child, each later one.

    A child says so first of all; of the root anybody may ask, over a link without a name.
    """

    known: Annotated[tuple[KnownCharter, ...], msgspec.Meta(max_length=MAX_COMMUNITIES)]


# A parent to its child.


class ParentHello(Wire, frozen=True, tag="standing"):
    """First of all: the digest of what is routed to this child, zero where nothing is, and bits of stamps.

    A child that holds other filters sends its whole table. `k` is what an edge broker itself asks of each
    filter that it shows; 1: nothing.
    """

    digest: Bytes16
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]
    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_K)]


class NewTree(Wire, frozen=True, tag="broker-tree"):
    """Either way: a newer tree than the other end said it holds."""

    tree: Signed


class Communities(Wire, frozen=True, tag="communities"):
    """The communities that there are in the network, by their keepers' keys: others are no more."""

    keepers: Annotated[tuple[PublicKey, ...], msgspec.Meta(max_length=MAX_COMMUNITIES)]


class NewCharter(Wire, frozen=True, tag="new-charter"):
    """A charter; from somebody without a name, to the root: hand it out."""

    charter: Signed


class RequestAnswer(Wire, frozen=True, tag="broker-done"):
    """The answer to the request with this serial."""

    serial: Counter
    verdict: BrokerVerdict


class ExposureReport(Wire, frozen=True, tag="exposed"):
    """How a subscription stands of which its client, or the edge broker, asks for anything.

    `is_shown`: something is shown outside that brings its messages. Neither how many there are nor what is
    shown is told: either would tell of the filters of others.
    """

    name: Bytes16
    is_shown: bool


class Forward(Wire, frozen=True, tag="broker-forward"):
    """A message. Its number is its place on this link, from 1."""

    message: Message


class Pong(Wire, frozen=True, tag="broker-pong"):
    """The answer to a `Ping`."""


# A publisher, whom the link does not name, to the root, and its answer.


class Publish(Wire, frozen=True, tag="broker-publish"):
    """Take a message: its tokens are words."""

    message: Message
    stamp: ProofOfWork | None


class Receipt(Wire, frozen=True, tag="broker-receipt"):
    """The answer, before any look-up: it says nothing of who subscribes. `difficulty` is for the next try."""

    verdict: BrokerVerdict
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]


class AskPast(Wire, frozen=True, tag="ask-past"):
    """Somebody without a name: say some of what is kept of a day under a word, as `Forward`s and a `Receipt`.

    In the order of their ids, behind one of them; none where there are no more. Said only to a root that
    announced that it keeps (`BrokerTree`): others know nothing of it.
    """

    day: Counter
    word: Bytes16
    after: Bytes32 | None
    stamp: ProofOfWork | None


BrokerRequest = Advertise | AskFactors | HandUp | Join | Subscribe | Unsubscribe
FromBelow = BrokerRequest | Ack | Ping | NewTree | AskCharters | NewCharter | Publish | AskPast
ParentNotice = ParentHello | NewTree | Communities | NewCharter | ExposureReport
FromAbove = ParentNotice | RequestAnswer | Factors | Forward | Pong | Receipt


def past_asked(asked: AskPast) -> bytes:
    """Return the digest (32 bytes) of a question, which its stamp is bound to."""
    return digest(Domain.STAMP, b"past", asked.day.to_bytes(8, "big"), asked.word, asked.after or b"")


decode_from_below: Callable[[bytes], FromBelow] = decoder(FromBelow, "frame", MAX_BROKER_FRAME)
decode_from_above: Callable[[bytes], FromAbove] = decoder(FromAbove, "frame", MAX_BROKER_FRAME)
decode_filter: Callable[[bytes], ShownFilter] = decoder(ShownFilter, "filter", MAX_BROKER_FRAME)
"""One alone, as an edge broker's traces have those of its clients."""
decode_shown: Callable[[bytes], ShownFilter | CoveredFilter] = decoder(
    ShownFilter | CoveredFilter, "filter", MAX_BROKER_FRAME
)
"""One that went up under `clear`, in traces."""
