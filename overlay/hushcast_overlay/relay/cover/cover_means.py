"""Cover's means: what porter, second and third of one relay use of its other parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hushcast_overlay.connector import Connector
from hushcast_overlay.network_covers import NetworkCovers
from hushcast_overlay.relay.admission_control import AdmissionControl
from hushcast_overlay.relay.boxes.box_lanes import BoxLanes
from hushcast_overlay.relay.cover.cover_sends import CoverSends
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.leases import Lease
from hushcast_runtime.carriers.carrier import Handover
from hushcast_runtime.context import Context

DropMessage = Callable[[Message, Handover], Awaitable[None]]
"""Drops a message as a publisher does, over connections that do not name this relay; raises `Refusal`."""

HoldBox = Callable[[bytes, Lease | None, bool], Awaitable[None]]
"""Makes a box, by its key, and has a lease lead to it, which may be paid for; raises as `KeptBoxes.hold`."""


@dataclass(frozen=True, slots=True)
class CoverMeans:
    """Those of one relay."""

    identity: Identity
    covers: NetworkCovers
    admission: AdmissionControl
    sends: CoverSends
    connector: Connector
    shards: Shards
    drop: DropMessage
    lanes: BoxLanes
    hold_box: HoldBox
    context: Context

    @property
    def relay(self) -> RelayId:
        """The relay's own name."""
        return self.identity.seed.public()
