"""Upkeep: plans a route's trees, tells relays, mends and renews, each route at moments of its own."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
import trio

from hushcast_overlay.installing import Installer
from hushcast_overlay.route import Planned, Route, RouteRecords
from hushcast_overlay.shards import Shards
from hushcast_overlay.trees import Trees
from hushcast_protocol.base import told
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds before the next attempt where no relay confirmed
ASK_WITHIN = 30.0  # seconds after a restart that old trees wait for the rosters missed
RESUME_WITHIN = 10.0  # seconds after a restart in which relays are told what is missing, each at its moment

log = structlog.get_logger("upkeep")


class Upkeep:
    """Keeps the trees of one daemon's routes installed."""

    def __init__(
        self,
        profile: Profile,
        shards: Shards,
        trees: Trees,
        installer: Installer,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._profile = profile
        self._shards = shards
        self._calendar = shards.calendar
        self._trees = trees
        self._installer = installer
        self._records = records
        self._env = context.env
        self._tracer = context.tracer

    async def run(self, route: Route, resumed: bool) -> None:
        """Plan, tell, mend and renew at moments of this route's own, never because a roster came."""
        await route.opened.wait()
        # A relay that dialled earlier would not find the mailbox, and wait before it dials again.
        await route.published.wait()
        if resumed:
            await self._resume(route)
        mending = self._next_mending()
        longest = min(LONGEST_PAUSE, self._calendar.lead)
        backoff = Backoff(min(FIRST_PAUSE, longest), longest, self._env.randomness)
        while True:
            mends = self._env.now() >= mending
            if mends:
                mending = self._next_mending()
            is_seen_to = await self._see_to(route, mends)
            self._forget_lapsed(route)
            if self._is_told(route):
                route.ready.set()
                if is_seen_to:
                    backoff.reset()
                    await trio.sleep(self._until_next_look(route, mending))
                    continue
            await trio.sleep(backoff.next())

    async def _see_to(self, route: Route, mends: bool) -> bool:
        """Have what is wanted planned and told; return whether it was known of each day who is to be told."""
        is_seen_to = True
        for day in self._days_wanted(route):
            try:
                for number in range(self._profile.trees):
                    if (day, number) not in route.planned:
                        await self._plan(route, day, number)
                    await self._complete(route, route.planned[day, number], mends)
            except (TransportError, PeerError, Refusal) as error:
                log.warning("a tree has to wait: its relays are not known yet", reason=str(error))
                is_seen_to = False
        return is_seen_to

    async def _resume(self, route: Route) -> None:
        """Take up what a restart interrupted, with rosters of now if the directory has any."""
        if self._is_told(route):
            route.ready.set()
        await self._shards.fresh(ASK_WITHIN)
        await trio.sleep(self._env.uniform(0.0, RESUME_WITHIN))

    def _is_told(self, route: Route) -> bool:
        today = route.on(self._calendar.day(self._env.now()))
        return any(planned.nodes for planned in today)

    def _next_mending(self) -> float:
        return self._calendar.next_mending(self._env.now(), self._env.uniform(0.0, 1.0))

    def _days_wanted(self, route: Route) -> Iterable[int]:
        today = self._calendar.day(self._env.now())
        renews = self._renews_at(route, today) <= self._env.now() and self._shards.knows(today + 1)
        return (today, today + 1) if renews else (today,)

    def _renews_at(self, route: Route, day: int) -> float:
        return self._calendar.day_start(day + 1) - route.renewal * self._calendar.day_seconds

    def _until_next_look(self, route: Route, mending: float) -> float:
        now = self._env.now()
        renewal = self._renews_at(route, self._calendar.day(now))
        # Telling relays may have taken until after the moment to mend.
        return max(0.0, (min(mending, renewal) if renewal > now else mending) - now)

    async def _plan(self, route: Route, day: int, number: int) -> None:
        planned = await self._trees.plan(route, day, number)
        # On disk before any relay hears of it: what is installed can always be withdrawn.
        await self._records.keep_installation(planned)
        route.planned[planned.key] = planned
        self._tell_installed(route, planned)

    def _tell_installed(self, route: Route, planned: Planned) -> None:
        installation = planned.installation
        self._tracer.tell(
            told.Installed(
                route.topic,
                route.seed.public(),
                installation.day,
                self._profile.depth,
                dict(installation.tree.parents),
                (installation.trunk, *installation.entries),
            )
        )

    async def _complete(self, route: Route, planned: Planned, mends: bool) -> None:
        """Tell all whose seat changed, and all others that have not confirmed."""
        # A tree that nobody knows of may change at any moment.
        if (mends or not planned.nodes) and await self._trees.mend(route, planned):
            await self._records.keep_installation(planned)
            self._tell_installed(route, planned)
        planned.tell_again(route.coverage.shunned(len(planned.installation.tree.parents)))
        if not planned.unconfirmed:
            return
        installation = planned.installation
        await self._installer.deliver(
            installation.tree,
            await self._shards.find(installation.day, installation.trunk),
            sorted(planned.unconfirmed),
            lambda relay: installation.install(self._profile, relay),
            planned.confirm,
        )
        if not route.scope.cancel_called:  # ended meanwhile: its record is that of a withdrawal now
            await self._records.keep_installation(planned)

    def _forget_lapsed(self, route: Route) -> None:
        for key in list(route.planned) if self._env.is_certain() else ():
            if self._calendar.lapse(key[0]) <= self._env.now():
                self._records.forget(route.planned.pop(key))
