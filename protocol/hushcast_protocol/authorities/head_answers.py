"""What a daemon makes of an authority's answer: whom it follows from then on, and the relays of a head."""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.chain import Chain, ChainState
from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.head_inside import HeadInside, inside_of
from hushcast_protocol.authorities.heads import CertifiedHead, Head, decode_head, head_digest
from hushcast_protocol.authorities.listing import Listing, listing_root
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import Network, Relay, Roster, checked_relays, descriptor_digest
from hushcast_protocol.base.sharding import sharding_for
from hushcast_protocol.base.wire import RelayId

_NO_SHARDS = Listing(0, (), ()).shards_digest


def follow(state: ChainState, heads: Iterable[CertifiedHead], network: bytes) -> ChainState:
    """Return where a follower stands with the heads of an answer, in order; raises as `Chain.check` does.

    Heads from before the one held, or of sets before the one begun with, are for others, and passed over.
    """
    chain, shown = Chain(network, state), False
    for certified in heads:
        shown = True
        head = decode_head(certified.head)
        is_before = chain.head is None and head.authorities.signers != chain.state.authorities.signers
        if not is_before and head.epoch >= chain.epoch and chain.state.fork is None:
            chain.take(certified)
    if shown and chain.head is None:
        raise AuthenticationError("a directory shows no head of the authorities that are known")
    return chain.state


def is_cut(head: Head) -> bool:
    """Tell whether the network is in shards in the epoch of a head; raise as `inside_of` does."""
    return _is_cut(head.epoch, inside_of(head))


def _is_cut(epoch: int, inside: HeadInside) -> bool:
    return sharding_for(inside.shards, day_of(epoch)) is not None


def roster_of(agreed: HeadAnswer, network: Network) -> Roster:
    """Return the relays that an answer's last head stands for, each by a descriptor that it signed.

    On a day of shards it has none: who needs some asks for their shard. Raises `DecodeError`,
    `AuthenticationError`, or `OtherWire` where the head is of a wire not spoken here. Who signed the head is
    for the caller (`follow`).
    """
    if not agreed.heads:
        raise DecodeError("an answer has no head")
    certified = agreed.heads[-1]
    head = decode_head(certified.head)
    inside = inside_of(head)
    relays: dict[RelayId, Relay] = {}
    if not _is_cut(head.epoch, inside):
        relays = _listed(agreed, head.epoch, inside.root, network)
    elif agreed.seats or agreed.waiting or agreed.shards is not None:
        raise DecodeError("an answer lists the relays of a network in shards")
    digest = head_digest(certified.head)
    keeping = head.authorities.keeping
    return Roster(
        network,
        head.epoch,
        head.previous,
        digest,
        relays,
        shards=inside.shards,
        keeping=keeping,
        candidates=inside.candidates,
        cover=head.authorities.cover,
        cover_draw=inside.cover,
    )


def _listed(agreed: HeadAnswer, epoch: int, root: bytes, network: Network) -> dict[RelayId, Relay]:
    relays = checked_relays(agreed.seats, network, epoch)
    seats = tuple(
        (relay.id, descriptor_digest(entry.descriptor.body), relay.difficulty, entry.since)
        for relay, entry in zip(relays.values(), agreed.seats, strict=True)
    )
    shards = _NO_SHARDS if agreed.shards is None else agreed.shards
    if listing_root(epoch, seats, agreed.waiting, shards) != root:
        raise AuthenticationError("the relays of an answer are not those that its head stands for")
    return relays
