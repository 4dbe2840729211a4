"""Cover's role: what a relay does for daemons with cover, where its network's rule has it; else nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_frames import CoverPlace, PlaceRefusal
from hushcast_protocol.overlay.frame_directions import BetweenCover, FromCovered
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_runtime.transports.channel import Channel

if TYPE_CHECKING:
    from hushcast_overlay.relay.cover.cover_desks import CoverDesks


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
            # A relay of a network without cover loads no line of it.
            from hushcast_overlay.relay.cover.cover_desks import CoverDesks

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
