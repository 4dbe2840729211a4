"""Host cards: a host's word where it is reached, for relays that list it on no roster.

Two keys sign it: the host's, so that nobody says for it where it is; and that of the address, so that nobody
has relays dial an address that is not his.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import MAX_ADDRESS, Address, is_of_key, parse_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Bytes64, PublicKey, RelayId, Wire, decoder, encode

MAX_HOST_PLACE = 256  # bytes; one has about 150


class HostPlace(Wire, frozen=True, tag="host-place/1"):
    """What a host card says: at which address a relay is reached, and the key of that address."""

    relay: RelayId
    service: PublicKey
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]


class HostCard(Wire, frozen=True, tag="host-card"):
    """A `HostPlace`, encoded, with the signatures of both keys in it."""

    place: Annotated[bytes, msgspec.Meta(max_length=MAX_HOST_PLACE)]
    by_relay: Bytes64
    by_service: Bytes64


_decode_place: Callable[[bytes], HostPlace] = decoder(HostPlace, "host's place", MAX_HOST_PLACE)


def make_host_card(relay: Seed, service: Seed, address: Address) -> HostCard:
    """Return the card of a relay with these seeds, at an address of its service's; always the same bytes."""
    place = encode(HostPlace(relay.public(), service.public(), address))
    purpose = SignaturePurpose.HOST_CARD
    return HostCard(place, signature(relay, purpose, place), signature(service, purpose, place))


def check_host_card(card: HostCard) -> tuple[RelayId, Address]:
    """Return which relay a card is of, and where that is reached; `DecodeError` or `AuthenticationError`."""
    place = _decode_place(card.place)
    check(place.relay, SignaturePurpose.HOST_CARD, card.place, card.by_relay)
    check(place.service, SignaturePurpose.HOST_CARD, card.place, card.by_service)
    address = parse_address(place.address)
    if not is_of_key(address, place.service):
        raise AuthenticationError("a host card is for an address that is not its signer's")
    return place.relay, address
