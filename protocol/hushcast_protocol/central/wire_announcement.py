"""The announcement of a central network's wire, and of what is kept: its server signs it, proxies hand it on.

A proxy can neither make one nor change it, so it cannot have one user open links otherwise than others do; it
can keep back the newest, until the user hears it from another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.network_wire import AnnouncedWire
from hushcast_protocol.base.wire import Bytes32, Counter, Lasting, decoder
from hushcast_protocol.central.network import CentralNetwork

MAX_WIRE_ANNOUNCEMENT = 1024  # bytes; it has 80, and may grow


class WireAnnouncement(Lasting, frozen=True, tag="central-wire/1"):
    """What a central network speaks, and what it goes on to."""

    network: Bytes32
    version: Counter
    """Unix seconds of when it was signed, or one more than the one before had."""
    wire: AnnouncedWire
    days_kept: Counter = 0
    """For how many days after its own the server keeps what is published, for who asks; 0: none."""


@dataclass(frozen=True, slots=True)
class CheckedAnnouncement:
    """An announcement as it was signed, and what it says."""

    signed: Signed
    version: int
    wire: AnnouncedWire
    days_kept: int


_decode: Callable[[bytes], WireAnnouncement] = decoder(
    WireAnnouncement, "announcement of a wire", MAX_WIRE_ANNOUNCEMENT
)


def announce(
    seed: Seed,
    network: CentralNetwork,
    before: CheckedAnnouncement | None,
    wanted: int | None,
    days_kept: int,
    now: float,
) -> Signed:
    """Sign, as the server, what is kept, and spoken, on the way to the wire that is wanted, if any is.

    It is newer than any before, also than one that a state from a backup does not know. A new network speaks
    the newest.
    """
    if before is None:
        version, wire = int(now), AnnouncedWire(wires.spoken().highest, None, 0)
    else:
        version = max(int(now), before.version + 1)
        wire = before.wire.towards(wanted, network.calendar.epoch(now))
    return sign(seed, SignaturePurpose.CENTRAL_WIRE, WireAnnouncement(network.id, version, wire, days_kept))


def check_announcement(signed: Signed, network: CentralNetwork) -> CheckedAnnouncement:
    """Return what the network's server announced; raise `AuthenticationError` or `DecodeError`."""
    check(network.server, SignaturePurpose.CENTRAL_WIRE, signed.body, signed.signature)
    said = _decode(signed.body)
    if said.network != network.id:
        raise AuthenticationError("a wire was announced for another network")
    return CheckedAnnouncement(signed, said.version, said.wire, min(said.days_kept, MAX_DAYS_KEPT))
