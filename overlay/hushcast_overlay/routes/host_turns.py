"""Host turns: which of a box's two hosts is used, by which of them answers and brings what it should."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.host_list import HostList
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

AWAY_AT_FIRST = 0.0  # seconds until the second host is used while nobody knows of the box: two attempts

Begin = Callable[[bytes, RouteBox, OverlayRoute], None]
"""Attends to the hosts of a box, by the name of its route."""


class HostTurns:
    """The turns of one daemon's boxes."""

    def __init__(
        self, shards: Shards, trees: Trees, records: RouteRecords, context: Context, begin: Begin
    ) -> None:
        self._shards = shards
        self._trees = trees
        self._calendar = shards.calendar
        self._records = records
        self._begin = begin
        self._env = context.env
        self._counters = context.counters

    def patience(self, box: RouteBox, route: OverlayRoute) -> float:
        """Return the seconds that the first host is away before the second is used."""
        today = self._calendar.day(self._env.now())
        is_known = any(planned.nodes for planned in route.towards(box.seed))
        is_known = is_known or (not self._trees.are_planted(today) and box.is_sought(today))
        away = self._shards.manner.away_epochs * self._calendar.epoch_seconds
        return away if is_known else AWAY_AT_FIRST

    async def note_failure(
        self, name: bytes, box: RouteBox, route: OverlayRoute | None, relay: RelayId
    ) -> None:
        """Take notice that a host does not serve."""
        if box.is_ended or route is None:
            return
        second = box.hosts.relays[-1]
        is_second_there = second != relay and box.link(second) is not None
        now, patience = self._env.now(), self.patience(box, route)
        await self.use(name, box, route, box.hosts.failed(relay, now, patience, is_second_there))
        if box.hosts.needs(second, now, patience) and not is_second_there:
            box.changed.tell()

    async def use(self, name: bytes, box: RouteBox, route: OverlayRoute, hosts: HostList) -> None:
        """Keep which hosts there are, and which is in use."""
        if hosts == box.hosts:
            return
        box.hosts = hosts
        watch(box, route)
        await self._records.keep_box(name, box)
        self._begin(name, box, route)
        box.changed.tell()
        route.stirred.set()

    def asks(self, route: OverlayRoute, day: int) -> bool:
        """Tell whether some host of a route's box was to ask keepers for all of a day."""
        box = route.box
        return box is not None and any(known.is_to_bring(day) for known in box.at.values())

    async def leave(self, route: OverlayRoute, day: int) -> None:
        """Use the other host of a box, once it answers, where the one in use did not bring what is of a day.

        The other is then asked for all that this one was to bring. Nothing follows while that one has not had
        the time to.
        """
        box = route.box
        if box is None or box.is_ended:
            return
        known = box.host(box.hosts.current)
        settled = self._shards.manner.settled_epochs * self._calendar.epoch_seconds
        if known.link is None or trio.current_time() - known.link.asked_at < settled:
            return
        if known.is_to_bring(day):
            log.warning("a host has not brought what keepers show")
            self._counters.add("hosts_left")
            known.lacking = known.since
            await self._records.keep_box(route.wanted.name, box)
            await self.use(route.wanted.name, box, route, box.hosts.lost(box.hosts.current))


def watch(box: RouteBox, route: OverlayRoute | None) -> None:
    """Judge probes by what the host in use says, and by nothing while it says nothing."""
    if route is not None:
        route.coverage.watch(box.is_there)
