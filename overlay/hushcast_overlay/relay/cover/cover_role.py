"""Cover's role: what a relay does for daemons with cover, where its network's rule has it; else nothing."""

from __future__ import annotations

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.relay.cover.errand_desk import ErrandDesk
from hushcast_overlay.relay.cover.host_desk import HostDesk
from hushcast_overlay.relay.cover.lane_desk import LaneDesk
from hushcast_overlay.relay.cover.porter import Porter
from hushcast_overlay.relay.cover.waybill_desk import WaybillDesk
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import (
    CoverBill,
    CoverGiven,
    CoverHanded,
    CoverList,
    CoverListed,
    CoverMarked,
    CoverPassed,
    CoverPlace,
    CoverWaybill,
    PlaceRefusal,
)
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.overlay.frame_directions import BetweenCover, FromCovered
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_runtime.transports.channel import Channel


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


class CoverRole:
    """One relay's part in cover."""

    def __init__(self, means: CoverMeans, rosters: RosterKeeper) -> None:
        self._means = means
        self._rosters = rosters
        self.desks: CoverDesks | None = None
        """None where the network has no cover."""

    def take(self, frame: BetweenCover, relay: RelayId) -> None:
        """Take what another relay says; raise a `PeerError` where no honest one says so, as without cover."""
        if self.desks is not None:
            self.desks.take(frame, relay)
        elif self._means.covers.rules() is None:
            raise DecodeError("a relay speaks of cover in a network without")

    def admit(self, frame: CoverPlace) -> PlaceRefusal | None:
        """Give a daemon its place, unless it has one; return why it gets none."""
        return "cover" if self.desks is None else self.desks.porter.admit(frame)

    async def serve(self, channel: Channel[FromCovered], frame: CoverPlace) -> None:
        """Serve a daemon that was just admitted; raises a `PeerError` or `TransportError`."""
        assert self.desks is not None
        await self.desks.porter.serve(channel, frame)

    async def hold(self, asked: LaneHold, paid: bool) -> None:
        """Do as the owner of a box with a lane asks; raises as `HostDesk.hold`."""
        if self.desks is None:
            raise Refusal("quota")  # there is no cover, or not yet after a start
        await self.desks.host.hold(asked, paid)

    def has_part(self) -> bool:
        """Tell whether the network has cover, by the newest roster."""
        return self._means.covers.rules() is not None

    def fullness(self) -> float:
        """Return the share (0 to 1) that is taken of the places, or of the lanes of boxes: the larger one."""
        lanes = self._means.lanes.fullness()
        return lanes if self.desks is None else max(lanes, self.desks.porter.fullness())

    async def run(self) -> None:
        """Have a part in cover while the rules have it, anew where they change, until cancelled."""
        while True:
            if (rules := self._means.covers.rules()) is None:
                await self._rosters.changed()
                continue
            desks = CoverDesks(rules, self._means)
            await desks.load()
            self.desks = desks
            async with trio.open_nursery() as nursery:
                nursery.start_soon(desks.run)
                while self._means.covers.rules() == rules:
                    await self._rosters.changed()
                self.desks = None
                desks.close()
                nursery.cancel_scope.cancel()
