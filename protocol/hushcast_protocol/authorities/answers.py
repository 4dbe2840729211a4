"""What a daemon makes of an authority's answer: whom it follows from then on, and the relays of a head."""

from __future__ import annotations

from hushcast_protocol.authorities.chain import Chain, Followed
from hushcast_protocol.authorities.heads import decode_head, head_digest
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.requests import Agreed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import Network, Roster, checked_relays, descriptor_digest


def follow(state: Followed, agreed: Agreed, network: bytes) -> Followed:
    """Return where a follower stands with the heads of an answer; raises as `Chain.check` does.

    Heads from before the one held, or of sets before the one begun with, are for others, and passed over.
    """
    chain = Chain(network, state)
    for certified in agreed.heads:
        head = decode_head(certified.head)
        is_before = chain.head is None and head.authorities.signers != chain.state.authorities.signers
        if not is_before and head.epoch >= chain.epoch and chain.state.fork is None:
            chain.take(certified)
    if agreed.heads and chain.head is None:
        raise AuthenticationError("a directory shows no head of the authorities that are known")
    return chain.state


def roster_of(agreed: Agreed, network: Network) -> Roster:
    """Return the relays that an answer's last head stands for, each by a descriptor that it signed.

    Raises `DecodeError` or `AuthenticationError`. Who signed the head is for the caller (`follow`).
    """
    if not agreed.heads:
        raise DecodeError("an answer has no head")
    certified = agreed.heads[-1]
    head = decode_head(certified.head)
    relays = checked_relays(agreed.seats, network, head.epoch)
    seats = tuple(
        (relay, descriptor_digest(entry.descriptor.body), entry.since)
        for relay, entry in zip(relays, agreed.seats, strict=True)
    )
    if Listing(head.epoch, seats, agreed.waiting).root != head.root:
        raise AuthenticationError("the relays of an answer are not those that its head stands for")
    return Roster(network, head.epoch, head.previous, head_digest(certified.head), relays)
