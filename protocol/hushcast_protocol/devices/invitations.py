"""Invitations: a link by which one new device joins a circle, and what the two say to each other.

The link has a secret of its own, from which come a private topic for the two and the key of what they say in
it. The new device says its entry; the inviting one answers with the circle's secret, sealed to the new
device's key and signed by the key that the link names. So who reads the link afterwards learns nothing, and
who reads it in time and is first is seen: the other one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import NONCE, seal, unseal
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import open_box, seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness, Seed, TopicSecret
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.content.link_text import LINK_SCHEME, unpack, write_packed
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.topics import Topic
from hushcast_protocol.devices.circle_secrets import HIDDEN_NAMES, MAX_SEALED_TO, CircleKeys, CircleSecret
from hushcast_protocol.devices.shared_entries import MAX_ENTRY, DeviceValue, EntryKind, SharedEntry

INVITED_WITHIN = 600.0  # seconds for which an invitation is good: time to carry a code, and to type a link
MAX_JOINING = MAX_ENTRY + 1024  # bytes of what a new device says
MAX_WELCOME = 200 * 1024  # bytes of entries in the answer: what is over comes with beats
_TOPIC = HIDDEN_NAMES + "invitation"


class DeviceInvitation(Wire, frozen=True, tag="device/1"):
    """What an invitation's link holds."""

    network: Bytes16
    secret: Bytes32
    inviter: PublicKey
    expires: Counter
    """Unix seconds."""

    def __repr__(self) -> str:
        return "<DeviceInvitation>"

    def topic(self) -> Topic:
        """Return the private topic in which the two meet."""
        return Topic(_TOPIC, (), TopicSecret(digest(Domain.INVITATION, b"topic", key=self.secret)))


class Welcome(Wire, frozen=True, tag="welcome/1"):
    """What the inviting device answers, inside a box for the new one: the secret, and what is shared."""

    secret: Bytes32
    generation: Counter
    mark: Bytes16
    without: Annotated[tuple[PublicKey, ...], msgspec.Meta(max_length=MAX_SEALED_TO)]
    entries: tuple[SharedEntry, ...]

    def __repr__(self) -> str:
        return "<Welcome>"

    def keys(self) -> CircleKeys:
        """Return the circle's keys."""
        return CircleKeys(CircleSecret(self.secret), self.generation, self.mark, frozenset(self.without))


_decode_invitation: Callable[[bytes], DeviceInvitation] = decoder(DeviceInvitation, "invitation", 256)
_decode_entry: Callable[[bytes], SharedEntry] = decoder(SharedEntry, "new device", MAX_JOINING)
_decode_signed: Callable[[bytes], Signed] = decoder(Signed, "welcome", MAX_PAYLOAD)
_decode_welcome: Callable[[bytes], Welcome] = decoder(Welcome, "welcome", MAX_PAYLOAD)


def network_mark(network: bytes) -> bytes:
    """Return what an invitation says of its network, by that one's id (16 bytes)."""
    return digest(Domain.INVITATION, network, size=LABEL)


def write_invitation(invitation: DeviceInvitation) -> str:
    """Return an invitation as a link."""
    return write_packed(encode(invitation))


def read_invitation(text: str) -> DeviceInvitation:
    """Return the invitation that a link is; raise `UsageError`, which shows nothing of it."""
    body = unpack(text.strip().removeprefix(LINK_SCHEME)) if len(text) < 1024 else None
    if body is None:
        raise UsageError("the link was altered or cut off: copy it again, whole")
    try:
        return _decode_invitation(body)
    except DecodeError:
        raise UsageError(
            "the link is no invitation: `hushcast device invite`, on the other device, prints one"
        ) from None


def seal_joining(invitation: DeviceInvitation, entry: SharedEntry, randomness: Randomness) -> bytes:
    """Return what a new device says: the entry about itself."""
    return _seal(invitation, b"join", encode(entry), randomness)


def open_joining(invitation: DeviceInvitation, payload: bytes) -> SharedEntry:
    """Return the entry of a new device; raise `AuthenticationError` or `DecodeError` where it is none."""
    entry = _decode_entry(_open(invitation, b"join", payload))
    entry.check()
    if entry.kind is not EntryKind.DEVICE or entry.name != entry.device or entry.read().is_removed:
        raise DecodeError("a new device says something else")
    return entry


def seal_welcome(
    invitation: DeviceInvitation, seed: Seed, to: DeviceValue, welcome: Welcome, randomness: Randomness
) -> bytes:
    """Return what the inviting device answers."""
    box = seal_box(to.agreement, encode(welcome), randomness)
    signed = sign(seed, SignaturePurpose.DEVICE_INVITATION, box)
    return _seal(invitation, b"welcome", encode(signed), randomness)


def open_welcome(invitation: DeviceInvitation, agreement: AgreementKey, payload: bytes) -> Welcome:
    """Return the answer; raise `AuthenticationError` where it is to another device, or `DecodeError`."""
    signed = _decode_signed(_open(invitation, b"welcome", payload))
    check(invitation.inviter, SignaturePurpose.DEVICE_INVITATION, signed.body, signed.signature)
    try:
        box = msgspec.msgpack.decode(signed.body, type=bytes)
    except msgspec.MsgspecError:
        raise DecodeError("a welcome does not decode") from None
    return _decode_welcome(open_box(agreement.private_key(), box))


def _seal(invitation: DeviceInvitation, what: bytes, plain: bytes, randomness: Randomness) -> bytes:
    nonce = randomness(NONCE)
    return nonce + seal(plain, what, nonce, _key(invitation))


def _open(invitation: DeviceInvitation, what: bytes, payload: bytes) -> bytes:
    if len(payload) < NONCE:
        raise DecodeError("a message is too short to be of an invitation")
    try:
        return unseal(payload[NONCE:], what, payload[:NONCE], _key(invitation))
    except CryptoError:
        raise AuthenticationError("a message is not sealed by this invitation") from None


def _key(invitation: DeviceInvitation) -> bytes:
    return digest(Domain.INVITATION, b"seal", key=invitation.secret)
