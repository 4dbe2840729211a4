"""Targets: everything of the protocol that is decoded, past the seals that an adversary can make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import core_examples as examples
import msgspec
from core_examples import (
    BOX,
    DAY,
    DIRECTORY,
    EPOCH,
    NETWORK,
    NOW,
    TOPIC_KEY,
    parcel_key,
    relay_id,
    stream,
)
from drilled_wire import DRILL
from fuzzing import Target
from mutating import mutate_packed
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal

from hushcast_protocol.authorities import directory_requests as asked
from hushcast_protocol.base import roster
from hushcast_protocol.base.addresses import is_of_key
from hushcast_protocol.base.crypto.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.secrets import LeaseSecret
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content import bodies, messages, parts
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay import box_frames as boxes
from hushcast_protocol.overlay import frame_directions, frames, leases, parcels, trail
from hushcast_protocol.overlay.host_cards import HostCard, check_host_card
from hushcast_protocol.overlay.installations import HostRoot, Installation, seal_down
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.overlay.tree import plan

AUTHOR = examples.seed(77)
_LAST = examples.roster_of(1)
_KNOWN = {relay_id(number): examples.seed(1000 + number) for number in range(8)}
_SEALED_TO = {relay_id(number): parcel_key(number) for number in range(8)}


def unpacked(data: bytes) -> Any:
    """Return the msgpack value in `data`, None where it is none."""
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def descriptor_signed_anew(body: bytes) -> Signed:
    """Sign a descriptor with the key that it names, if it is one that the adversary has."""
    tree = unpacked(body)
    named = tree[2] if isinstance(tree, list) and len(tree) > 2 and isinstance(tree[2], bytes) else b""
    return Signed(body, signature(_KNOWN.get(named, _KNOWN[relay_id(0)]), SignaturePurpose.DESCRIPTOR, body))


def _descriptor(data: bytes) -> object:
    return roster.check_descriptor(descriptor_signed_anew(data), NETWORK)


def _roster(data: bytes) -> object:
    """A directory that lies: what it lists is checked, planned over and sealed to."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > 4 and isinstance(tree[4], list):
        for entry in tree[4]:
            if isinstance(entry, list) and len(entry) > 1 and isinstance(entry[1], list):
                signed = entry[1]
                if len(signed) == 3 and isinstance(signed[1], bytes):
                    signed[2] = descriptor_signed_anew(signed[1]).signature
        data = encode(tree)
    given = signature(DIRECTORY, SignaturePurpose.ROSTER, data)
    checked = roster.check_roster(Signed(data, given), DIRECTORY.public(), NETWORK)
    for last in (None, _LAST):
        try:
            roster.check_successor(checked, last)
        except PeerError:
            assert last
    assert set(checked.origins) <= set(checked.relays)
    tree_of_all = plan(sorted(checked.relays), 2, b"s" * 16)
    planned = Installation(
        DAY,
        HostRoot(BOX, relay_id(examples.HOST)),
        tree_of_all,
        b"t" * 16,
        (b"e" * 16,),
        LeaseSecret(b"l" * 32),
    )
    instructions = {
        relay: planned.install(HARDENED, relay, examples.host_card(examples.HOST)) for relay in checked.relays
    }
    return seal_down(tree_of_all, instructions, checked, EPOCH, stream())


def _host_card(data: bytes) -> object:
    by_relay, by_service = (
        signature(examples.seed(number), SignaturePurpose.HOST_CARD, data) for number in (1000, 3000)
    )
    relay, address = check_host_card(HostCard(data, by_relay, by_service))
    assert relay == relay_id(0)
    assert is_of_key(address, examples.seed(3000).public())
    return relay


def _onion(data: bytes) -> object:
    """A parcel whose layers are sealed anew, opened and carried out relay by relay, each seen twice."""
    sealed = _sealed_anew(data, 0)
    waiting = [(relay_id(0), sealed)]
    memory = parcels.ParcelMemory()
    for _ in range(40):
        if not waiting:
            break
        relay, layer = waiting.pop()
        if relay not in _SEALED_TO:
            continue
        try:
            parcel = parcels.open_parcel(layer, _SEALED_TO[relay], NETWORK.id, relay, EPOCH)
            memory.note(layer, EPOCH, True)
            if parcel.instruction is not None:
                examples.carry_out(examples.lease_book(relay), parcel.instruction, NOW)
        except (PeerError, Refusal):
            continue
        assert parcel.relay == relay
        assert parcel.network == NETWORK.id
        waiting += [(onward.relay, onward.sealed) for onward in parcel.onward]
    assert len(memory) <= 40
    memory.forget(EPOCH + 100)
    assert not len(memory)
    return sealed


def _sealed_anew(data: bytes, depth: int, relay: bytes = b"") -> bytes:
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > 6 and isinstance(tree[6], list) and depth < 6:
        for onward in tree[6][:16]:
            if isinstance(onward, list) and len(onward) > 2 and isinstance(onward[2], bytes):
                below = onward[1] if isinstance(onward[1], bytes) else b""
                onward[2] = _sealed_anew(onward[2], depth + 1, below)
        data = encode(tree)
    key = _SEALED_TO.get(relay, parcel_key(0))
    ephemeral = digest(Domain.PARCEL, data)  # the same bytes each time, as `seal_parcel` gives in simulations
    return seal_box(key.public(), data, lambda size: ephemeral[:size])


def _onions() -> Iterator[bytes]:
    leaf = encode(examples.parcel_to(2, examples.host_install()))
    other = encode(examples.parcel_to(3, leases.Withdraw(b"w" * 16)))
    middle = encode(
        examples.parcel_to(
            1,
            leases.Install(
                b"l" * 16, DAY, leases.ToRelay(relay_id(0)), (b"e" * 16, b"f" * 16), b"m" * 16, b"b" * 16
            ),
            parcels.OnwardParcel(relay_id(2), leaf),
            parcels.OnwardParcel(relay_id(3), other),
        )
    )
    top = examples.host_install()
    yield encode(examples.parcel_to(0, top, parcels.OnwardParcel(relay_id(1), middle)))
    yield encode(examples.parcel_to(0, leases.Withdraw(b"w" * 16), parcels.OnwardParcel(relay_id(0), leaf)))


def _sealed_parcel(data: bytes) -> object:
    return parcels.open_parcel(data, parcel_key(0), NETWORK.id, relay_id(0), EPOCH)


def _frame(data: bytes) -> object:
    """What a relay does first with any frame; what decodes also encodes, to the same value."""
    frame = frames.decode_overlay(data)
    assert frames.decode_overlay(encode(frame)) == frame
    if isinstance(frame, frames.Forward | frames.Drop):
        messages.check_message(frame.message)
        trail.trail_bits(frame.message.trail)
        return bodies.open_body(TOPIC_KEY, frame.message)
    return frame


def _translated(data: bytes) -> object:
    """The same in a wire that has other kinds: none of its own is taken in the newest, nor the other way."""
    said = DRILL.up(data)
    assert said is not None
    frame = frames.decode_overlay(said)
    again = DRILL.down(frame)
    assert again is not None
    back = DRILL.up(encode(again))
    assert back is not None
    assert frames.decode_overlay(back) == frame
    return frame


def _owner_frame(data: bytes) -> object:
    """What a host does first with an owner's frame."""
    frame = frame_directions.decode_from_owner(data)
    assert frame_directions.decode_from_owner(encode(frame)) == frame
    if isinstance(frame, boxes.Hold | boxes.Seek):
        assert len(boxes.held_out(frame)) == DIGEST
        assert 0 <= boxes.hold_price(frame, 19) <= 24
    return frame


def _message(data: bytes) -> object:
    """A publisher that lies: the id is made right again, so that what lies behind it is reached."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) == 6 and isinstance(tree[5], bytes) and type(tree[2]) is int:
        tree[1] = messages.message_id(tree[2] % 2**48, tree[5])
        data = encode(tree)
    message = _decode_message(data)
    messages.check_message(message)
    passed = trail.trail_bits(message.trail)
    assert trail.trail_of(passed) == message.trail
    return bodies.open_body(TOPIC_KEY, message)


_decode_message = decoder(Message, "message", 512 * 1024)


def _body(data: bytes) -> object:
    """A publisher that seals what it likes under a topic's key, and signs it where it has the key."""
    nonce = b"n" * messages.NONCE
    plain = data
    if data[7:39] == AUTHOR.public():
        sizes = int.from_bytes(data[1:5], "big"), int.from_bytes(data[5:7], "big")
        values = data[messages.HEADER : messages.HEADER + sizes[1]]
        payload = data[messages.HEADER + sizes[1] : messages.HEADER + sizes[1] + sizes[0]]
        signed = bodies._signed(TOPIC_KEY, DAY, nonce, values, payload)
        plain = data[:39] + signature(AUTHOR, SignaturePurpose.AUTHOR, signed) + data[messages.HEADER :]
    sealed = nonce + aead_seal(plain, bodies._associated(DAY), nonce, bodies._body_key(TOPIC_KEY))
    message = Message(messages.message_id(DAY, sealed), DAY, (b"t" * 16,), bytes(messages.TRAIL_SIZE), sealed)
    content = bodies.open_body(TOPIC_KEY, message)
    assert len(content.payload) <= len(data)
    assert content.author in (None, AUTHOR.public())
    if content.part_proof is None:
        return content
    if content.part_proof[:32] == AUTHOR.public():
        signed = signature(AUTHOR, SignaturePurpose.PART, content.payload)
        content = replace(content, part_proof=AUTHOR.public() + signed)
    part = parts.read_part(content, DAY)
    assert part.number < part.count <= parts.MAX_PARTS
    return part


def _bodies() -> Iterator[bytes]:
    for values, author in (
        ({}, None),
        ({"kind": "fire", "lat": 7}, None),
        ({"kind": "é"}, AUTHOR),
        ({}, AUTHOR),
    ):
        packed, payload = encode(values) if values else b"", b"payload"
        proof = author.public() + bytes(64) if author else bytes(96)
        lengths = b"\x01" + len(payload).to_bytes(4, "big") + len(packed).to_bytes(2, "big")
        yield (lengths + proof + packed + payload).ljust(messages.HEADER + 64, b"\x00")
    piece = bytes([0, 5]) + DAY.to_bytes(8, "big") + bytes(1014)
    yield b"\x04" + len(piece).to_bytes(4, "big") + bytes(2) + AUTHOR.public() + bytes(64) + piece


def _drawn(strategy: Any, count: int) -> Callable[[], list[bytes]]:
    """Return real encodings of drawn values: hypothesis draws them once, from a seed."""

    def draw() -> list[bytes]:
        from hypothesis import HealthCheck, Phase, given, seed, settings

        found: list[bytes] = []

        @seed(1)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(value: Any) -> None:
            found.append(encode(value))

        collect()
        return found

    return draw


def _messages() -> Iterator[bytes]:
    for count in (1, 8, messages.MAX_TOKENS):
        yield encode(examples.small_message(tuple(bytes([n]) * 16 for n in range(count))))


def _frames() -> Iterator[bytes]:
    yield from _drawn(examples.overlay_frames, 60)()
    yield encode(frames.Drop(examples.small_message(), None))
    yield encode(frames.Forward(examples.small_message(number=1)))


def _translations() -> Iterator[bytes]:
    for data in _frames():
        yield data
        said = DRILL.down(frames.decode_overlay(data))
        assert said is not None
        yield encode(said)


def _box_frames() -> Iterator[bytes]:
    yield from _drawn(examples.box_frames, 40)()
    yield from _drawn(examples.overlay_frames, 20)()


def _sealed_parcels() -> list[bytes]:
    return [_sealed_anew(data, 0) for data in _onions()]


def _descriptors() -> list[bytes]:
    return [encode(examples.descriptor_of(number)) for number in range(4)]


def _rosters() -> list[bytes]:
    return [encode(examples.roster_body(count)) for count in (0, 1, 3)]


def _packed(
    name: str, run: Callable[[bytes], object], corpus: Any, weight: int, *answers: type[Exception]
) -> Target:
    return Target(name, run, corpus, answers or (PeerError,), mutate_packed, weight)


_decode_view = decoder(roster.RosterView | None, "view", 64)


def some_frames(random: Random) -> list[bytes]:
    """Encoded frames for machines to send, sound and damaged."""
    corpus = list(_frames())
    return corpus[-6:] + [mutate_packed(random, corpus) for _ in range(40)]


TARGETS = [
    _packed("frame", _frame, _frames, 30),
    _packed("frame-of-a-wire", _translated, _translations, 5),
    _packed("owner-frame", _owner_frame, _box_frames, 10),
    _packed("host-frame", frame_directions.decode_to_owner, _box_frames, 10, DecodeError),
    _packed("message", _message, _messages, 20),
    Target("body", _body, _bodies, (PeerError,), weight=20),
    _packed("request", asked.decode_directory_request, _drawn(examples.requests, 30), 20, DecodeError),
    _packed("answer", asked.decode_directory_answer, _drawn(examples.answers, 30), 20, DecodeError),
    _packed("proof", examples.READERS["proof"], _drawn(examples.proofs, 30), 20, DecodeError),
    _packed("view", _decode_view, _drawn(examples.views, 20), 10, DecodeError),
    _packed("descriptor", _descriptor, _descriptors, 10),
    _packed("roster", _roster, _rosters, 4, PeerError, Refusal),
    _packed("host-card", _host_card, lambda: [examples.host_card(number).place for number in range(3)], 10),
    Target("onion", _onion, _onions, (), mutate_packed, 5),
    Target("sealed-parcel", _sealed_parcel, _sealed_parcels, (PeerError, Refusal), weight=5),
]
