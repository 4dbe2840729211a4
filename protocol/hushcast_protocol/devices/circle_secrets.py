"""Secrets of a circle: what a person's devices share for as long as none of them is removed.

From a secret come the topic that the devices meet in, and the key that they seal under besides the topic's
own: carriers in experiments leave bodies open. Who removes a device draws a new secret and seals it to each
device that stays. Of two that were drawn at the same moment all take the one of higher rank, and where that
was sealed to a device which somebody else removed, the next one is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Annotated, NamedTuple

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness, Secret, Seed, TopicSecret
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes16, Counter, PublicKey, Wire, decoder
from hushcast_protocol.content.topics import Topic
from hushcast_protocol.devices.shared_entries import DeviceValue

MAX_SEALED_TO = 64  # devices in a new secret, and removed ones: twice as many as a circle has
MAX_AHEAD = 64  # generations that a new secret may be ahead: from the highest nobody could go on
MAX_NEW_SECRET = 16 * 1024  # bytes; 64 boxes and 64 keys take 10 KB

HIDDEN_NAMES = "\0"
"""How names of topics begin that daemons have for themselves; nobody types it, and no relay sees it."""
_TOPIC = HIDDEN_NAMES + "circle"


class CircleSecret(Secret):
    """What the devices of a circle share."""

    __slots__ = ()

    def topic(self) -> Topic:
        """Return the private topic that the devices meet in."""
        return Topic(_TOPIC, (), TopicSecret(digest(Domain.CIRCLE_TOPIC, key=self.reveal())))

    def seal_key(self) -> bytes:
        """Return the key that their messages are sealed under."""
        return digest(Domain.CIRCLE_SEAL, key=self.reveal())


class CircleKeys(NamedTuple):
    """A secret, and where it stands among those of the circle."""

    secret: CircleSecret
    generation: int
    """0 is that of the first device; each new one has one more."""
    mark: bytes
    """What decides between two of one generation (16 bytes)."""
    without: frozenset[PublicKey]
    """The removed devices that it was kept from."""

    @property
    def rank(self) -> tuple[int, bytes]:
        """The higher one holds."""
        return self.generation, self.mark


class NewSecret(Wire, frozen=True, tag="new-secret/1"):
    """What a device says that draws a new secret: a box for each that stays."""

    generation: Counter
    maker: PublicKey
    without: Annotated[tuple[PublicKey, ...], msgspec.Meta(max_length=MAX_SEALED_TO)]
    boxes: Annotated[
        tuple[
            tuple[
                PublicKey,
                Annotated[bytes, msgspec.Meta(max_length=CircleSecret.LENGTH + SEALED_BOX)],
            ],
            ...,
        ],
        msgspec.Meta(max_length=MAX_SEALED_TO),
    ]


_decode: Callable[[bytes], NewSecret] = decoder(NewSecret, "new secret", MAX_NEW_SECRET)


class Expelled(Exception):
    """The new secret says that this device was removed."""


def is_hidden_topic(topic: Topic) -> bool:
    """Tell whether a daemon has a topic for itself, so that applications are not shown it."""
    return topic.secret is not None and topic.name.startswith(HIDDEN_NAMES)


def first_keys(randomness: Randomness) -> CircleKeys:
    """Draw the secret of a new circle."""
    return CircleKeys(CircleSecret.draw(randomness), 0, bytes(LABEL), frozenset())


def is_stale(keys: CircleKeys, removed: Collection[PublicKey]) -> bool:
    """Tell whether a device that was removed knows the secret, so that a new one is to be drawn."""
    return not set(removed) <= keys.without


def draw_secret(
    seed: Seed,
    before: CircleKeys,
    living: Mapping[PublicKey, DeviceValue],
    removed: Collection[PublicKey],
    randomness: Randomness,
) -> tuple[Signed, CircleKeys]:
    """Draw the secret after `before`, sealed to each living device; return what tells them, and the keys.

    One whose key nothing can be sealed to gets none: it would keep all others from it.
    """
    secret = CircleSecret.draw(randomness)
    boxes: list[tuple[PublicKey, bytes]] = []
    for key, value in sorted(living.items()):
        with suppress(AuthenticationError):
            boxes.append((key, seal_box(value.agreement, secret.reveal(), randomness)))
    said = NewSecret(before.generation + 1, seed.public(), tuple(sorted(removed)), tuple(boxes))
    signed = sign(seed, SignaturePurpose.NEW_SECRET, said)
    return signed, CircleKeys(secret, said.generation, _mark(signed), frozenset(removed))


def check_secret(
    signed: Signed,
    keys: CircleKeys,
    removed: Collection[PublicKey],
    last: Signed | None,
    guests: Collection[PublicKey] = (),
) -> frozenset[PublicKey] | None:
    """Return `None` where a new secret may be taken; else those for whom one is to be drawn above it.

    `last` is what told of the present secret, where the new one was told under one of before. Removed devices
    know that, too: they can invent others there, and mislead one that has not heard of their removal. So it
    is without those alone that this device knows to be removed, by the word of one that stands; and who drew
    it, and all whom it is sealed to, have to be devices that the present one speaks of, or `guests`, for whom
    this device vouches itself. An honest one may know others, and parts.

    Raises `AuthenticationError` where it is not to be followed in any way or the maker did not sign it, and
    `DecodeError`.
    """
    said = _decode(signed.body)
    if said.generation > keys.generation + MAX_AHEAD:
        raise DecodeError("a new secret stands where nobody could draw another one")
    check(said.maker, SignaturePurpose.NEW_SECRET, signed.body, signed.signature)
    if last is None:
        if said.maker in removed:
            raise AuthenticationError("a removed device drew a new secret")
        return None
    here, boxes = sealed_to(last).union(guests), sealed_to(signed)
    if said.maker not in here.difference(removed):
        raise AuthenticationError("a new secret is of devices that the present one does not know")
    if not kept_from(signed) <= set(removed):
        raise AuthenticationError("a new secret is without devices that nobody who stands removed")
    known = here | kept_from(last)  # a removal of before may have been nobody's word
    return None if boxes <= known else boxes & known


def rank_of(signed: Signed) -> tuple[int, bytes]:
    """Return where a new secret stands among those of the circle; raise `DecodeError`."""
    return _decode(signed.body).generation, _mark(signed)


def kept_from(signed: Signed) -> frozenset[PublicKey]:
    """Return the removed devices that a new secret is kept from; raise `DecodeError`."""
    return frozenset(_decode(signed.body).without)


def sealed_to(signed: Signed) -> frozenset[PublicKey]:
    """Return the devices that a new secret is for: by its maker's word they stand; raise `DecodeError`."""
    return frozenset(key for key, _ in _decode(signed.body).boxes)


def take_secret(signed: Signed, own: PublicKey, agreement: AgreementKey) -> CircleKeys:
    """Return the keys that another device drew, as one told that is trusted: the maker may have come later.

    Raises `Expelled` where this device was removed, `AuthenticationError` where the maker did not sign it or
    nothing is sealed to this one, and `DecodeError`.
    """
    said = _decode(signed.body)
    check(said.maker, SignaturePurpose.NEW_SECRET, signed.body, signed.signature)
    if own in said.without:
        raise Expelled
    box = dict(said.boxes).get(own)
    if box is None:
        raise AuthenticationError("a new secret is not sealed to this device")
    secret = open_box(agreement.private_key(), box)
    if len(secret) != CircleSecret.LENGTH:
        raise AuthenticationError("a new secret is none")
    return CircleKeys(CircleSecret(secret), said.generation, _mark(signed), frozenset(said.without))


def _mark(signed: Signed) -> Bytes16:
    return digest(Domain.DEVICE_SUMMARY, signed.body, size=LABEL)
