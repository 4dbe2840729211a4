"""Targets: what devices of one person say to each other, and the links that lead from one to another."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
from fuzzing import Target
from mutating import mutate_packed, mutate_text

from hushcast_protocol.base.crypto.aead import NONCE, TAG, seal
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign, signature
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.devices import beats, invitations
from hushcast_protocol.devices.beats import Beat, open_beat
from hushcast_protocol.devices.circle_secrets import (
    CircleSecret,
    Expelled,
    draw_secret,
    first_keys,
    take_secret,
)
from hushcast_protocol.devices.shared_entries import (
    AuthorValue,
    DeviceValue,
    EntryKind,
    ReadValue,
    SharedEntry,
    SubscriptionValue,
    write_entry,
)
from hushcast_protocol.devices.shared_state import SUMMARY, SharedState

_SEEDS = [Seed(bytes([number]) * 32) for number in (1, 2)]
_AGREEMENT = AgreementKey(bytes(range(32)))
_SECRET = CircleSecret(bytes(range(32)))
_INVITATION = invitations.DeviceInvitation(bytes(16), bytes(range(32)), _SEEDS[0].public(), 1000)
_ENTRIES = [
    write_entry(_SEEDS[0], 1, DeviceValue("laptop", _AGREEMENT.public())),
    write_entry(_SEEDS[0], 2, SubscriptionValue("hushcast:x", "kind = fire", bytes(16), {"k": 5})),
    write_entry(_SEEDS[1], 3, ReadValue(100, (bytes(16),))),
    write_entry(_SEEDS[1], 4, AuthorValue("pen", bytes(32))),
]
_TODAY = 100


def _fresh() -> Randomness:
    """Return randomness that is the same each time."""
    return Random(1).randbytes


def _sealed(packed: bytes) -> bytes:
    plain = len(packed).to_bytes(4, "big") + packed
    size = next(size for size in beats._SIZES if size >= len(plain) + NONCE + TAG)
    return bytes(NONCE) + seal(
        plain.ljust(size - NONCE - TAG, b"\x00"), b"", bytes(NONCE), _SECRET.seal_key()
    )


def _beat(data: bytes) -> None:
    """What a device of the circle says, whatever it signs."""
    if len(data) > beats.MAX_BEAT // 2:
        return
    signed = Signed(data, signature(_SEEDS[0], SignaturePurpose.DEVICE_BEAT, data))
    beat = open_beat(_SECRET, _sealed(encode(signed)))
    state = SharedState()
    for entry in beat.entries:
        state.merge(entry, _TODAY)
    assert len(state) <= len(beat.entries)
    assert len(state.summary(_TODAY)) == SUMMARY


def _entry(data: bytes) -> None:
    """An entry that its device did sign, whatever it holds."""
    kind, own = EntryKind(1 + (data[0] if data else 0) % 4), _SEEDS[0].public()
    plain = SharedEntry(kind, own, 1, own, data[1:], bytes(64))
    signed = signature(_SEEDS[0], SignaturePurpose.DEVICE_ENTRY, plain._signed())
    state = SharedState()
    state.merge(msgspec.structs.replace(plain, signature=signed), _TODAY)
    state.devices()
    state.subscriptions()
    state.authors()
    assert not state.lacking(state.summary(_TODAY), _TODAY)


def _new_secret(data: bytes) -> None:
    signed = Signed(data, signature(_SEEDS[0], SignaturePurpose.NEW_SECRET, data))
    take_secret(signed, _SEEDS[1].public(), _AGREEMENT)


def _invitation(data: bytes) -> None:
    found = invitations.read_invitation(data.decode(errors="surrogateescape"))
    assert invitations.read_invitation(invitations.write_invitation(found)) == found


def _joining(data: bytes) -> None:
    plain = invitations._seal(_INVITATION, b"join", data, _fresh())
    invitations.open_joining(_INVITATION, plain)


def _welcome(data: bytes) -> None:
    box = invitations.seal_box(_AGREEMENT.public(), data, _fresh())
    signed = sign(_SEEDS[0], SignaturePurpose.DEVICE_INVITATION, box)
    payload = invitations._seal(_INVITATION, b"welcome", encode(signed), _fresh())
    invitations.open_welcome(_INVITATION, _AGREEMENT, payload).keys()


def _beats() -> Iterator[bytes]:
    signed, _ = draw_secret(_SEEDS[0], first_keys(_fresh()), {}, (), _fresh())
    yield encode(Beat(_SEEDS[0].public(), _TODAY, bytes(SUMMARY), tuple(_ENTRIES), (signed,)))
    yield encode(Beat(_SEEDS[0].public(), _TODAY, None))


def _new_secrets() -> Iterator[bytes]:
    living = {_SEEDS[1].public(): DeviceValue("x", _AGREEMENT.public())}
    for removed in ((), (_SEEDS[1].public(),)):
        yield draw_secret(_SEEDS[0], first_keys(_fresh()), living, removed, _fresh())[0].body


def _welcomes() -> Iterator[bytes]:
    yield encode(invitations.Welcome(bytes(32), 1, bytes(16), (bytes(32),), tuple(_ENTRIES)))


TARGETS = [
    Target("device-beat", _beat, _beats, (PeerError,), mutate_packed, 5),
    Target(
        "device-entry",
        _entry,
        lambda: (bytes([entry.kind - 1]) + entry.value for entry in _ENTRIES),
        (PeerError,),
        mutate_packed,
        5,
    ),
    Target("device-secret", _new_secret, _new_secrets, (PeerError, Expelled), mutate_packed, 5),
    Target(
        "device-invitation",
        _invitation,
        lambda: [invitations.write_invitation(_INVITATION).encode()],
        (UsageError,),
        mutate_text,
        5,
    ),
    Target("device-joining", _joining, lambda: map(encode, _ENTRIES), (PeerError,), mutate_packed, 5),
    Target("device-welcome", _welcome, _welcomes, (PeerError,), mutate_packed, 5),
]
