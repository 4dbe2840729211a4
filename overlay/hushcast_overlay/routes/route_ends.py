"""Route ends: what the trees of a day lead to, a box at a host or a mailbox of the daemon's own."""

from __future__ import annotations

from collections.abc import Collection

from hushcast_overlay.routes.host_link import HostLink
from hushcast_overlay.routes.mailboxes import Mailboxes
from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.route import OverlayRoute, RouteEnd, TreeInstallation
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.profile import Profile, Root


class RouteEnds:
    """The mailboxes and boxes of one daemon's routes.

    A route whose day was planned with one of them keeps it for that day: what waits there is not lost.
    """

    def __init__(self, profile: Profile, shards: Shards, mailboxes: Mailboxes, boxes: OwnedBoxes) -> None:
        self._profile = profile
        self._shards = shards
        self.mailboxes = mailboxes
        self.boxes = boxes

    async def of_day(self, route: OverlayRoute, day: int) -> RouteEnd:
        """Return what trees of a day lead to; draw it if there is none. Raises what `Shards.find` does."""
        if self._is_boxed(route, day) and (box := await self.boxes.of_day(route, day)) is not None:
            route.boxed.add(day)
            return box
        route.boxed.discard(day)
        return await self.mailboxes.of_day(route, day, self._shards.is_cut(day))

    def _is_boxed(self, route: OverlayRoute, day: int) -> bool:
        if planned := route.on(day):
            return isinstance(planned[0].installation.root, HostRoot)
        return self._profile.root is Root.HOST

    async def hold(self, route: OverlayRoute, planned: TreeInstallation) -> bool:
        """Tell whether what a tree brings is taken at its root; have a host take it, as `OwnedBoxes.hold`."""
        if not isinstance(planned.installation.root, HostRoot):
            return True
        return await self.boxes.hold(route, planned)

    def link(self, planned: TreeInstallation) -> HostLink | None:
        """Return the link to the host that is the root of an installation, if there is one."""
        return self.boxes.link(planned.installation.root)

    async def close_lapsed(self, route: OverlayRoute, wanted: Collection[int]) -> None:
        """Close and forget what no day needs: `wanted` are those to be installed now.

        Whoever calls is certain of the time, and has forgotten the trees of days gone by.
        """
        route.boxed &= {*wanted}
        await self.mailboxes.close_lapsed(route, wanted)
        await self.boxes.close_lapsed(route, list(wanted))
