"""Left trunks: what an owner leaves with its host, so that it has all that keepers have after two weeks away.

The host in use has the trunks of the days to come; each day one is added, at a drawn moment. A host that
has none for days on which it was not this one's, or lost them, is asked for these days as a whole; and so it
is for days before the subscription, where its past is wanted, and for all that the box's other host was to
bring, where that was found to lack some.
"""

from __future__ import annotations

from contextlib import suppress

import trio

from hushcast_overlay.routes.host_link import HostLink
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.route_box import AtHost, RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.overlay.box_frames import SoughtTrunk
from hushcast_protocol.overlay.frames import RefusalReason
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

DAYS_AHEAD = MAX_DAYS_KEPT  # days to come whose trunks a host has: who is away for longer finds days missing


class LeftTrunks:
    """What one daemon's hosts have of it to ask keepers by."""

    def __init__(self, shards: Shards, trees: Trees, records: RouteRecords, context: Context) -> None:
        self._shards = shards
        self._trees = trees
        self._calendar = shards.calendar
        self._records = records
        self._env = context.env
        self._spawn = context.spawn

    def begin(self, box: RouteBox, route: OverlayRoute, link: HostLink) -> None:
        """Leave trunks with a host that has the box, for as long as there is the link."""
        known = box.host(link.host.id)
        if known.leaving is not link:
            known.leaving = link
            self._spawn(self._leave_all, box, route, link)

    async def _leave_all(self, box: RouteBox, route: OverlayRoute, link: HostLink) -> None:
        while link.is_open and not box.is_ended:
            is_used = box.hosts.current == link.host.id
            if is_used and self._shards.keeping.keepers:
                with suppress(TransportError):
                    if (refused := await self.leave(box, route, link)) is not None:
                        log.warning("a host does not ask keepers for a box", reason=refused)
            with trio.move_on_after(self._until_next()):
                await box.changed.wait()

    async def leave(self, box: RouteBox, route: OverlayRoute, link: HostLink) -> RefusalReason | None:
        """Leave what a host lacks; return why it does not take it.

        Raises `TransportError` where it does not answer; then the link ends.
        """
        today, left = self._calendar.day(self._env.now()), link.sought
        has_tree = self._trees.are_planted(today)
        if left is None and not has_tree:
            # There may be no box yet, and trunks make none.
            hold = HostRoot(box.seed, link.host.id).bare_hold(today, self._env.randomness(LABEL))
            if (refused := await link.hold(hold)) is not None:
                return refused
        # What the host before had not asked for comes by nothing else where no tree leads there.
        succeeds = left is None and box.whole_from is not None and not has_tree
        first, last = self._first(box, left, today, succeeds), today + DAYS_AHEAD
        past, lacking = self._past(box, route, today), box.lacking_elsewhere(link.host.id)
        again = {*past, *self._again(lacking, today)}
        trunks = []
        for day in sorted({*range(first, last + 1), *again}):
            tokens = await route.wanted.tokens(day)
            is_whole = day != today or first < today or succeeds or day in again
            trunks.append(SoughtTrunk(day, tokens.trunk, is_whole))
        if not trunks:
            return None
        try:
            refused = await link.seek(tuple(trunks))
        except TransportError:
            link.end()
            raise
        if refused is not None:
            return refused
        known = box.host(link.host.id)
        link.sought = known.sought = max(last, left or 0)
        if left is None or known.since < 0:
            known.since = first
        while known.since - 1 in again:
            known.since -= 1
        if again:
            link.asked_at = trio.current_time()
        for one in lacking:
            one.lacking = -1
        box.whole_from = past.start if past else box.whole_from or first + 1
        await self._records.keep_box(route.wanted.name, box)
        return None

    def _past(self, box: RouteBox, route: OverlayRoute, today: int) -> range:
        """Return the days of which no host was asked for all, and all is wanted."""
        if (since := route.wanted.since) is None:
            return range(0)
        return range(max(since, today - MAX_DAYS_KEPT), min(box.whole_from or today + 1, today + 1))

    def _again(self, lacking: list[AtHost], today: int) -> range:
        """Return the days of which hosts that were found to lack messages were to bring all."""
        if not lacking:
            return range(0)
        return range(max(min(one.lacking for one in lacking), today - MAX_DAYS_KEPT), today + 1)

    def _first(self, box: RouteBox, left: int | None, today: int, succeeds: bool) -> int:
        """Return the first day whose trunk a host is to have.

        Where it has none, that is the last day on which its owner left trunks with any host of the box; for
        one that `succeeds` another the day before, of which that one was not done in the first epoch.
        """
        if left is not None:
            return max(left + 1, today - MAX_DAYS_KEPT)
        renewed = max(known.sought for known in box.at.values()) - DAYS_AHEAD
        if renewed < 0:
            return today
        if succeeds:
            assert box.whole_from is not None
            renewed = max(renewed - 1, box.whole_from - 1)
        return max(renewed, today - MAX_DAYS_KEPT)

    def _until_next(self) -> float:
        """Return the seconds until a day is added, at a drawn moment of the next one."""
        now = self._env.now()
        midnight = self._calendar.day_start(self._calendar.day(now) + 1)
        return midnight + self._env.uniform(0.0, 1.0) * self._calendar.day_seconds - now
