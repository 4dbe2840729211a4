"""Box remainders: what may still wait for a box at one of its hosts, and when its owner comes for it.

A host sees when its owner is there, so an owner has a link to one that is not in use only while relays may
send there. It comes back on the day after each one that the host holds for, at a moment of its own, when
nothing of that day can follow any more: what came late has arrived by then, and is kept for that day alone.
What nobody came for, when the host's own day of keeping is over, is lost.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_overlay.routes.arrivals import HOSTS_DAYS
from hushcast_overlay.routes.host_link import HostLink
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.route_box import AtHost, RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.box_frames import BoxStanding
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

MAX_TOLD_LOST = 1_000_000  # messages that one host's word says gave way since it said so last


class BoxRemainders:
    """What waits for one daemon's boxes at hosts, in use or not."""

    def __init__(self, shards: Shards, records: RouteRecords, context: Context) -> None:
        self._shards = shards
        self._calendar = shards.calendar
        self._records = records
        self._env = context.env
        self._counters = context.counters

    def is_kept(self, known: AtHost) -> bool:
        """Tell whether messages may wait at a host."""
        return self._over(known) > self._env.now()

    def _over(self, known: AtHost) -> float:
        """Return when nothing waits at a host any more."""
        return self._calendar.day_start(known.held + 1 + self._days(known))

    def _days(self, known: AtHost) -> int:
        """Return for how many days more a host has what came on one: as long as keepers, where it seeks."""
        return self._shards.keeping.days if known.sought >= known.held else HOSTS_DAYS

    def is_due(self, known: AtHost) -> bool:
        """Tell whether a host that is not in use is to be asked for what waits there."""
        return self.is_kept(known) and known.due <= self._env.now()

    def until_due(self, known: AtHost) -> float:
        """Return the seconds until a host is to be asked, or given up; an epoch at most."""
        moments = [moment - self._env.now() for moment in (known.due, self._over(known))]
        return min([self._calendar.epoch_seconds, *(wait for wait in moments if wait > 0)])

    async def give_up(self, name: bytes, box: RouteBox, route: OverlayRoute | None, relay: RelayId) -> None:
        """Tell applications, once, that what waited at a host is lost, if it can come no more."""
        known = box.host(relay)
        if known.held < 0 or self.is_kept(known) or not self._env.is_certain():
            return
        known.held = -1
        # What no tree brought there the other host has of keepers, too.
        is_elsewhere = known.confirmed < 0 and any(map(self.is_kept, box.at.values()))
        if route is not None and not box.is_ended and not is_elsewhere:
            log.warning("what waited at a host comes no more")
            route.wanted.lose(None)
        await self._records.keep_box(name, box)

    async def note_seen(self, name: bytes, box: RouteBox, route: OverlayRoute, relay: RelayId) -> None:
        """Note that the owner is there today; tell applications if it was away for longer than a host keeps.

        Then what came after it left is lost, though the host holds for a later day: nobody knows how much.
        """
        known, today = box.host(relay), self._calendar.day(self._env.now())
        if known.seen == today or not self._env.is_certain():
            return
        if 0 <= known.seen <= known.held and known.seen + self._days(known) < today:
            log.warning("what waited at a host comes no more")
            route.wanted.lose(None)
        known.seen = today
        await self._records.keep_box(name, box)

    async def note_standing(
        self, name: bytes, box: RouteBox, route: OverlayRoute, relay: RelayId, standing: BoxStanding
    ) -> None:
        """Tell applications what a host has lost, by how it says that a box stands."""
        known = box.host(relay)
        if known.confirmed >= self._calendar.day(self._env.now()) and not standing.leases:
            log.warning("a host has lost a box, and what waited in it")
            known.confirmed = -1
            route.wanted.lose(None)
            await self._records.keep_box(name, box)
        if standing.gave_way != known.gave_way:
            # A host that lost its disk counts from 0 again.
            lost = min(standing.gave_way - min(known.gave_way, standing.gave_way), MAX_TOLD_LOST)
            if lost:
                self._counters.add("messages_lost_hosts", lost)
                route.wanted.lose(lost)
            known.gave_way = standing.gave_way
            await self._records.keep_box(name, box)

    async def watch(
        self,
        name: bytes,
        box: RouteBox,
        route: OverlayRoute,
        link: HostLink,
        is_needed: Callable[[], bool],
    ) -> None:
        """Note, while there is a link, when its host has brought all; end one that is not needed.

        A host that goes on sending keeps its owner no longer than `left_within` of the manner.
        """
        relay = link.host.id
        known = box.host(relay)
        left: float | None = None
        while True:
            manner = self._shards.manner
            await trio.sleep(manner.quiet_for)
            if not link.is_open:
                return
            await self.note_seen(name, box, route, relay)
            now = self._env.now()
            is_quiet = trio.current_time() - link.brought_at >= manner.quiet_for
            is_closed = self._env.is_certain() and self._calendar.lapse(known.held) <= now
            if is_needed():
                left = None
                if is_quiet and is_closed and known.held >= 0:
                    known.held = -1
                    await self._records.keep_box(name, box)
                continue
            left = now if left is None else left
            is_late = now - left >= manner.left_within * self._calendar.epoch_seconds
            if not is_late and not (is_quiet and self._has_moved(box, route, relay)):
                continue
            if is_closed:
                known.held = -1
            else:
                late = self._env.uniform(0.0, manner.comes_within * self._calendar.day_seconds)
                known.due = self._calendar.lapse(self._calendar.open_days(now).start) + late
            await self._records.keep_box(name, box)
            link.end()
            return

    def _has_moved(self, box: RouteBox, route: OverlayRoute, relay: RelayId) -> bool:
        """Tell whether all relays at the top know that their next hop is another host now."""
        for planned in route.towards(box.seed):
            installation = planned.installation
            if not isinstance(installation.root, HostRoot) or installation.day > box.host(relay).held:
                continue
            tops = {*installation.tree.children.get(None, ()), *planned.former}
            if installation.root.relay == relay or not tops.isdisjoint(planned.unconfirmed):
                return False
        return True
