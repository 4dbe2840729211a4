"""Requests: what a subscriber asks a provider, sealed to the provider's key, and what it hears back.

A provider never learns who asks. Each subscription has a name drawn for it, and a private topic for its
answers; two of one subscriber have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, ProofOfWorkCheck, mint
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder, encode
from hushcast_protocol.spatial.keywords import are_words
from hushcast_protocol.spatial.located_answer import MAX_ANSWER, LocatedAnswer
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.offer import Link, Offer
from hushcast_protocol.spatial.owner_keys import Handovers
from hushcast_protocol.spatial.places import on_earth
from hushcast_protocol.spatial.weight_table import WholeTable

DAY = 24 * 3600
MAX_DAYS = 30  # that a request may hold: who went away is forgotten
SIZES = (1024, 4096, 20_480)  # bytes that requests are padded to: few words, many, and the most there can be


class SubscribeRequest(Wire, frozen=True, tag="located-subscribe/1"):
    """Answer this subscription from now on; of two requests with one name the higher number holds.

    `until` is the day (since 1970) on which it ends unless it is renewed.
    """

    name: Bytes32
    number: Counter
    until: Counter
    answers: Link
    """Of the private topic that answers go to."""
    subscription: LocatedSubscription


class WithdrawRequest(Wire, frozen=True, tag="located-withdraw/1"):
    """Forget a subscription; the name, and no more, is remembered until that day."""

    name: Bytes32
    number: Counter
    until: Counter


class AskTable(Wire, frozen=True, tag="located-ask-table/1"):
    """Send the whole table of weights, once: who blurs a subscription needs it, to know what covers it."""

    answers: Link


LocatedRequest = SubscribeRequest | WithdrawRequest | AskTable


class SealedRequest(Wire, frozen=True, tag="located-request/1"):
    """A request as it travels."""

    stamp: ProofOfWork
    box: Annotated[bytes, msgspec.Meta(max_length=max(SIZES) + SEALED_BOX)]


class RequestConfirmation(Wire, frozen=True, tag="located-taken/1"):
    """A request was taken; answers come for all batches behind the newest one."""

    number: Counter
    newest: Signed | None
    keys: Handovers = ()
    """Of the owner, as far as the provider knows them."""


Reply = LocatedAnswer | RequestConfirmation | WholeTable
"""What comes over a private topic, in parts."""

decode_reply: Callable[[bytes], Reply] = decoder(Reply, "reply of a provider", MAX_ANSWER)
_decode_sealed: Callable[[bytes], SealedRequest] = decoder(
    SealedRequest, "request", max(SIZES) + SEALED_BOX + 128
)
_decode_request: Callable[[bytes], LocatedRequest] = decoder(LocatedRequest, "request", max(SIZES))
_PAD = b"\x01"


def seal_request(request: LocatedRequest, offer: Offer, day: int, randomness: Randomness) -> bytes:
    """Return a request as a message for the provider's topic; takes some tenths of a second.

    `day` counts from 1970. Raises `AuthenticationError` where the offer's key is of low order.
    """
    plain = encode(request) + _PAD
    padded = plain.ljust(next(size for size in SIZES if len(plain) <= size), b"\0")
    box = seal_box(offer.key, padded, randomness)
    return encode(SealedRequest(mint(offer.key, day, _content(box), offer.difficulty, randomness), box))


class RequestOpener:
    """Opens requests for a provider: those that were paid for, each once."""

    def __init__(self, key: AgreementKey, difficulty: int) -> None:
        self._key = key
        self._difficulty = difficulty
        self._stamps = ProofOfWorkCheck(key.public())

    def open(self, data: bytes, day: int) -> LocatedRequest:
        """Return a request; raise `DecodeError`, or `AuthenticationError` if it is not paid or not sealed."""
        sealed = _decode_sealed(data)
        if not self._stamps.spend(sealed.stamp, _content(sealed.box), day, self._difficulty):
            raise AuthenticationError("a request has no stamp of today, or one that was spent")
        padded = open_box(self._key.private_key(), sealed.box)
        if len(padded) not in SIZES:
            raise DecodeError("a request is not padded to one of the sizes")
        plain, pad, rest = padded.rpartition(_PAD)
        if not pad or rest.strip(b"\0"):
            raise DecodeError("a request is not padded as it has to be")
        request = _decode_request(plain)
        if isinstance(request, SubscribeRequest):
            asked = request.subscription
            if not on_earth(asked.place) or not are_words(asked.words):
                raise DecodeError("a subscription has no place on earth, or unsorted words")
        return request


def _content(box: bytes) -> bytes:
    return digest(Domain.LOCATED_REQUEST, box)
