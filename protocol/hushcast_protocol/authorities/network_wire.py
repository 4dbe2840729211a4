"""What a network speaks, by the outside of its newest head, and what it goes on to."""

from __future__ import annotations

from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.base.versions.network_wire import AnnouncedWire, NetworkWire


def wire_by(head: Head, epoch: int) -> NetworkWire:
    """Return what is spoken in an epoch as far as a head tells, which is of an epoch not long before."""
    now, change = head.authorities.wire, head.change
    if change is None or change.authorities.wire == now:
        return NetworkWire(now)
    return AnnouncedWire(now, change.authorities.wire, change.epoch).by(epoch)
