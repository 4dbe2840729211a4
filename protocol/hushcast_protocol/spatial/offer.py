"""Offers: what a subscriber has to know of a provider, as one line of text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes32, PublicKey, Wire, decoder, encode

SCHEME = "hushcast-provider:"
MAX_OFFER = 2048  # bytes; a topic's link is most of it
MAX_LINK = 1024  # characters of a private topic's link, which takes about 150
_CHECK = 4  # bytes of a hash, against a slip of whoever copies it
_WHAT = "that is no provider's offer: `hushcast located offer` prints one"

Link = Annotated[str, msgspec.Meta(max_length=MAX_LINK, pattern=r"^[!-~]*\Z")]


class Offer(Wire, frozen=True, tag="located-offer/1"):
    """A provider's X25519 key, the link of the topic that it takes requests on, whose feed, and the price."""

    key: Bytes32
    requests: Link
    owner: PublicKey
    difficulty: Annotated[int, msgspec.Meta(ge=1, le=MAX_DIFFICULTY)]
    """Bits of the stamp that a request needs: not 0, or one could be told again and again."""


_decode: Callable[[bytes], Offer] = decoder(Offer, "provider's offer", MAX_OFFER)


def write_offer(offer: Offer) -> str:
    """Return an offer on one line."""
    body = encode(offer)
    packed = base64.urlsafe_b64encode(body + digest(Domain.LOCATED_OFFER, body, size=_CHECK)).decode()
    return SCHEME + packed.rstrip("=")


def read_offer(text: str) -> Offer:
    """Return the offer that a text is; raise `UsageError`."""
    text = text.strip()
    if not text.startswith(SCHEME) or len(text) > 2 * MAX_OFFER:
        raise UsageError(_WHAT)
    packed = text.removeprefix(SCHEME)
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        offer = _decode(data[:-_CHECK])
    except (binascii.Error, ValueError, DecodeError):
        raise UsageError(f"{_WHAT}; this one was cut off or altered") from None
    if write_offer(offer) != text:
        raise UsageError(f"{_WHAT}; this one was cut off or altered")
    return offer
