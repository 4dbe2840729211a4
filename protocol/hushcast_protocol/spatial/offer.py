"""Offers: what a subscriber has to know of a provider, as one line of text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.stamps import MAX_DIFFICULTY
from hushcast_protocol.base.wire import Bytes32, PublicKey, Wire, decoder, encode

SCHEME = "hushcast-provider:"
MAX_OFFER = 2048  # bytes; a topic's link is most of it
_CHECK = 4  # bytes of a hash, against a slip of whoever copies it
_WHAT = "that is no provider's offer: `hushcast located offer` prints one"


class Offer(Wire, frozen=True, tag="located-offer/1"):
    """A provider's X25519 key, the link of the topic that it takes requests on, whose feed, and the price."""

    key: Bytes32
    requests: Annotated[str, msgspec.Meta(max_length=1024)]
    owner: PublicKey
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]
    """Bits of the stamp that a request needs."""


_decode: Callable[[bytes], Offer] = decoder(Offer, "provider's offer", MAX_OFFER)


def write_offer(offer: Offer) -> str:
    """Return an offer on one line."""
    body = encode(offer)
    packed = base64.urlsafe_b64encode(body + digest(Domain.LOCATED_OFFER, body, size=_CHECK)).decode()
    return SCHEME + packed.rstrip("=")


def read_offer(text: str) -> Offer:
    """Return the offer that a text is; raise `UsageError`."""
    packed = text.strip()
    if not packed.startswith(SCHEME) or len(packed) > 2 * MAX_OFFER:
        raise UsageError(_WHAT)
    packed = packed.removeprefix(SCHEME)
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        offer = _decode(data[:-_CHECK])
    except (binascii.Error, ValueError, DecodeError):
        raise UsageError(f"{_WHAT}; this one was cut off or altered") from None
    if digest(Domain.LOCATED_OFFER, data[:-_CHECK], size=_CHECK) != data[-_CHECK:]:
        raise UsageError(f"{_WHAT}; this one was cut off or altered")
    return offer
