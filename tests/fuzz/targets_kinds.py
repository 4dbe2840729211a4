"""Targets: every kind that goes over links, or is signed, sealed or hashed, decoded by itself.

What stands in docs/protocol.md is here, too; what is done with a kind has targets of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import central_examples
import golden_kinds
import msgspec
from fuzzing import Target
from mutating import mutate_packed
from protocol_layouts import SECTIONS

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.versions.network_wire import BEGINNING
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central.network import CentralNetwork
from hushcast_protocol.central.wire_announcement import WireAnnouncement, check_announcement

_LONGEST = 1 << 20  # bytes; each kind has a bound of its own where it is read
_READERS: dict[object, Callable[[bytes], object]] = {
    kind.__struct_config__.tag: decoder(kind, "kind", _LONGEST)  # type: ignore[attr-defined]
    for kinds in SECTIONS.values()
    for kind in kinds
}
_tag = msgspec.msgpack.Decoder(tuple[msgspec.Raw, ...])
_text = msgspec.msgpack.Decoder(str)
_SERVER = Seed(bytes([5]) * 32)
_NETWORK = CentralNetwork("n", "hardened", 3600, _SERVER.public(), central_examples.SEALING.public())


def _kind(data: bytes) -> object:
    """What one kind takes is the same once it was said anew."""
    try:
        read = _READERS[_text.decode(_tag.decode(data)[0])]
    except (msgspec.MsgspecError, ValueError, RecursionError, LookupError):
        raise DecodeError("it is no kind") from None
    taken = read(data)
    assert encode(read(encode(taken))) == encode(taken)
    return taken


def kinds() -> list[bytes]:
    """Return an example of each."""
    return [encode(example) for _, example in golden_kinds.examples()]


def _announced(data: bytes) -> object:
    """A server that signs what it likes."""
    signed = Signed(data, signature(_SERVER, SignaturePurpose.CENTRAL_WIRE, data))
    taken = check_announcement(signed, _NETWORK)
    now = taken.wire.by(0)
    assert 1 <= now.now < 2**16
    return taken.wire.towards(2, 0)


def _announcements() -> list[bytes]:
    said = [BEGINNING, BEGINNING.towards(2, 5)]
    return [encode(WireAnnouncement(_NETWORK.id, number, wire)) for number, wire in enumerate(said)]


TARGETS = [
    Target("kind", _kind, kinds, (PeerError,), mutate_packed, 30),
    Target("announced-wire", _announced, _announcements, (PeerError,), mutate_packed, 5),
]
