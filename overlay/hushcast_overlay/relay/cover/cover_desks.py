"""Cover's desks: a relay's parts for daemons with cover, while its network's rules stay the same."""

from __future__ import annotations

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.errand_desk import ErrandDesk
from hushcast_overlay.relay.cover.host_desk import HostDesk
from hushcast_overlay.relay.cover.lane_desk import LaneDesk
from hushcast_overlay.relay.cover.porter import Porter
from hushcast_overlay.relay.cover.waybill_desk import WaybillDesk
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import (
    CoverBill,
    CoverGiven,
    CoverHanded,
    CoverList,
    CoverListed,
    CoverMarked,
    CoverPassed,
    CoverWaybill,
)
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.overlay.frame_directions import BetweenCover


class CoverDesks:
    """One relay's parts while the rules stay the same."""

    def __init__(self, rules: CoverRules, means: CoverMeans) -> None:
        self.porter = Porter(rules, means)
        self.lanes = LaneDesk(rules, means)
        self.second = WaybillDesk(rules, means, self.lanes)
        self.third = ErrandDesk(rules, means)
        self.host = HostDesk(rules, means)

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await self.porter.places.load()
        await self.lanes.load()
        await self.second.load()
        await self.host.load()

    async def run(self) -> None:
        """Pass and deal with letters until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.porter.run)
            nursery.start_soon(self.second.run)
            nursery.start_soon(self.third.run)
            nursery.start_soon(self.host.run)

    def close(self) -> None:
        """Be done: other rules hold."""
        self.porter.places.close()
        self.host.close()

    def take(self, frame: BetweenCover, relay: RelayId) -> None:
        """Take what another relay says; raise a `PeerError` where no honest one says so."""
        if isinstance(frame, CoverWaybill):
            self.second.show(frame, relay)
        elif isinstance(frame, CoverPassed):
            self.second.take(frame, relay)
        elif isinstance(frame, CoverMarked):
            self.third.take(frame, relay)
        elif isinstance(frame, CoverList):
            self.second.take_list(frame, relay)
        elif isinstance(frame, CoverListed):
            self.porter.take_list(frame, relay)
        elif isinstance(frame, CoverBill):
            self.lanes.show(frame, relay)
        elif isinstance(frame, CoverGiven):
            self.lanes.take(frame, relay)
        else:
            assert isinstance(frame, CoverHanded)
            self.porter.take_block(frame, relay)
