"""Upkeep: plans a route's trees, tells relays and renews, each route at moments of its own.

On a day that has no trees hosts have all of keepers, and nobody else is told of anything.

Once a tree is told, relays hear no more of it on its day: they would see by it when the owner is there. What
is lost meanwhile goes around (`relay/detours.py`). Two things are told all the same: that a host is left for
the other one, at a drawn moment, and who loses probes, which show when their sender is there anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import trio

from hushcast_overlay.routes.installer import Confirm, Installer
from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.route import ListedEnd, OverlayRoute, TreeInstallation
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.host_cards import HostCard
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.renewals import RENEWS_FROM, next_renewal
from hushcast_runtime.context import Context
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

ASK_WITHIN = 30.0  # seconds after a restart that old trees wait for the rosters missed
# Seconds from a top relay's word until messages are said to come, where others have not answered and what
# enters at these does not wait for them: by then those that are there were told twice.
OTHERS_WITHIN = 10.0


class TreeUpkeep:
    """Keeps the trees of one daemon's routes installed."""

    def __init__(
        self,
        profile: Profile,
        shards: Shards,
        trees: Trees,
        installer: Installer,
        boxes: OwnedBoxes,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._profile = profile
        self._shards = shards
        self._calendar = shards.calendar
        self._trees = trees
        self._installer = installer
        self._boxes = boxes
        self._records = records
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn

    async def run(self, route: OverlayRoute, resumed: bool) -> None:
        """Plan, tell and renew at moments of this route's own, never because a roster came."""
        if resumed:
            await self._resume(route)
        mending = self._next_mending()
        longest = self._longest_pause()
        backoff = Backoff(self._shards.manner.first_pause, longest, self._env.randomness)
        while True:
            mends = self._env.now() >= mending
            if mends:
                mending = self._next_mending()
            route.stirred = trio.Event()
            is_seen_to = await self._see_to(route, mends)
            await self._forget_lapsed(route)
            if is_seen_to and (self._is_told(route) or not self._is_there(route)):
                backoff.reset()
                pause = self._until_next_look(route, mending)
            else:
                pause = backoff.next()
            with trio.move_on_after(pause):
                await route.stirred.wait()

    async def _see_to(self, route: OverlayRoute, mends: bool) -> bool:
        """Have what is wanted planned and told; return whether it was known of each day who is to be told.

        The trees of a day wait until the host answers; nothing else does. Who waits for messages of the
        running day does not wait for tomorrow's trees.
        """
        is_seen_to = True
        for day in self._days_wanted(route):
            try:
                if not isinstance(route.end, ListedEnd):
                    await self._boxes.of_day(route, day)
                await route.wanted.tokens(day)  # made from the topic's name while the host is dialled
                if not self._trees.are_planted(day):
                    await self._boxes.seek(route)
                elif self._is_there(route):
                    await self._tell(route, day, mends)
            except (TransportError, PeerError, Refusal) as error:
                log.warning("a subscription has to wait", reason=str(error))
                is_seen_to = False
            if self._is_told(route):
                route.ready.set()
        return is_seen_to

    def _confirm(self, route: OverlayRoute, planned: TreeInstallation, relays: set[RelayId]) -> None:
        """Note who has confirmed: by a top relay's word messages come, by others' from more origins."""
        planned.confirm(relays)
        if not route.is_reached and self._is_told(route):
            route.is_reached = True
            self._spawn(self._be_ready, route)

    async def _be_ready(self, route: OverlayRoute) -> None:
        if not self._profile.late_routes:
            await trio.sleep(OTHERS_WITHIN)
        route.ready.set()

    async def _tell(self, route: OverlayRoute, day: int, mends: bool) -> None:
        if self._shards.is_cut(day) and day == self._today():
            route.coverage.tree_changed(self._calendar.day_start(day))
        for number in range(self._profile.trees):
            if (day, number) not in route.planned:
                await self._plan(route, day, number)
            await self._complete(route, route.planned[day, number], mends)

    async def _resume(self, route: OverlayRoute) -> None:
        """Take up what a restart interrupted, with rosters of now if the directory has any."""
        if self._is_told(route):
            route.ready.set()
        await self._shards.fresh(ASK_WITHIN)
        await trio.sleep(self._env.uniform(0.0, self._shards.manner.retell_within))

    def _today(self) -> int:
        return self._calendar.day(self._env.now())

    @property
    def has_trees(self) -> bool:
        """Whether messages of today come by trees."""
        return self._trees.are_planted(self._today())

    def _is_told(self, route: OverlayRoute) -> bool:
        """Tell whether messages come: what a host keeps comes when it is there, so that need not be now."""
        today = self._today()
        if any(planned.reaches_root for planned in route.on(today)):
            return True
        return not self.has_trees and route.box is not None and route.box.is_sought(today)

    def _is_there(self, route: OverlayRoute) -> bool:
        return route.end is not None and route.end.is_there

    def _next_mending(self) -> float:
        return self._calendar.next_mending(self._env.now(), self._env.uniform(0.0, 1.0))

    def _days_wanted(self, route: OverlayRoute) -> list[int]:
        today, now = self._today(), self._env.now()
        days = (today, today + 1) if self._renews_at(route, today) <= now else (today,)
        return [day for day in days if self._shards.knows(day)]

    def _renews_at(self, route: OverlayRoute, day: int) -> float:
        """Return when the day after is installed: at a moment drawn for a box, or that of the own relay.

        Never where it has no trees.
        """
        if not self._trees.are_planted(day + 1):
            return math.inf
        midnight = self._calendar.day_start(day + 1)
        if isinstance(route.end, ListedEnd):
            return midnight - route.end.renewal * self._calendar.day_seconds
        return midnight if route.end is None else self._drawn_renewal(route, day, midnight)

    def _drawn_renewal(self, route: OverlayRoute, day: int, midnight: float) -> float:
        """Return when the day after is installed; a moment at which the host is not reached is drawn anew."""
        now = self._env.now()
        if route.on(day + 1) or not self._shards.knows(day + 1):
            return -math.inf  # it is begun, or is as soon as anybody can
        drawn_on, moment = route.renews
        if drawn_on != day:
            begin = self._calendar.day_start(day) + RENEWS_FROM * self._calendar.day_seconds
            moment = next_renewal(max(begin, now), midnight, self._env.uniform(0.0, 1.0))
        elif moment <= now and not self._is_there(route):
            moment = next_renewal(now, midnight, self._env.uniform(0.0, 1.0))
        route.renews = day, moment
        return moment

    def _turns_at(self, route: OverlayRoute) -> float:
        """Return when relays are told of the host in use: at a moment drawn anew where it is not reached."""
        planned = route.planned.values() if self.has_trees else ()
        if route.box is None or not any(self._trees.has_moved(route, one) for one in planned):
            route.turns = None
            return math.inf
        now, host = self._env.now(), route.box.hosts.current
        turns_to, moment = route.turns or (None, now)
        if turns_to != host or (moment <= now and not self._is_there(route)):
            midnight = self._calendar.day_start(self._today() + 1)
            moment = next_renewal(now, midnight, self._env.uniform(0.0, 1.0))
        route.turns = host, moment
        return moment

    def _until_next_look(self, route: OverlayRoute, mending: float) -> float:
        now = self._env.now()
        today = self._today()
        looks = [mending, self._renews_at(route, today), self._turns_at(route)]
        if looks[1] <= now and not self._shards.knows(today + 1):
            # The roster that tells of tomorrow may be the first of tomorrow, which comes a lead before it.
            share = route.end.renewal if isinstance(route.end, ListedEnd) else 0.5
            looks.append(self._calendar.day_start(today + 1) - share * self._calendar.lead)
            if looks[-1] <= now:
                looks.append(now + self._env.uniform(0.5, 1.0) * self._longest_pause())
        if not self._trees.are_planted(today + 1):
            # The rule may have changed by then.
            begins = self._calendar.day_start(today + 1)
            looks.append(begins + self._env.uniform(0.0, self._longest_pause()))
        # Telling relays may have taken until after the moment to mend.
        return max(0.0, min([mending, *(look for look in looks if look > now)]) - now)

    def _longest_pause(self) -> float:
        return min(self._shards.manner.longest_pause, self._calendar.lead)

    async def _plan(self, route: OverlayRoute, day: int, number: int) -> None:
        planned = await self._trees.plan(route, day, number)
        # On disk before any relay hears of it: what is installed can always be withdrawn.
        await self._records.keep_installation(planned)
        route.planned[planned.key] = planned
        self._tell_installed(route, planned)

    def _tell_installed(self, route: OverlayRoute, planned: TreeInstallation) -> None:
        installation = planned.installation
        assert route.end is not None
        tree = dict(installation.tree.parents)
        if isinstance(installation.root, HostRoot):
            host = installation.root.relay
            tree = {relay: above or host for relay, above in tree.items()} | {host: None}
        self._tracer.tell(
            ground_truth.Installed(
                route.topic,
                route.end.key,
                installation.day,
                self._profile.depth,
                tree,
                (installation.trunk, *installation.entries),
            )
        )

    async def _complete(self, route: OverlayRoute, planned: TreeInstallation, mends: bool) -> None:
        """Tell all relays of a tree that is new, and on its day those whose seat changed."""
        turns = self._turns_at(route) <= self._env.now()
        has_moved = self._trees.has_moved(route, planned) and (turns or not planned.nodes)
        if (mends or has_moved) and await self._trees.mend(route, planned, turns):
            await self._records.keep_installation(planned)
            self._tell_installed(route, planned)
        planned.tell_again(route.coverage.shunned(planned.installation.tree.parents))
        is_new = not planned.nodes
        held = trio.Event()
        early: set[RelayId] = set()

        async def hold(*, task_status: trio.TaskStatus[bool]) -> None:
            if await self._boxes.hold(route, planned, task_status=task_status):
                planned.is_held = True
                self._confirm(route, planned, early)
                held.set()

        def confirm(relays: set[RelayId]) -> None:
            if held.is_set():
                self._confirm(route, planned, relays)
            else:  # it counts for nothing while what they send may be sent back
                early.update(relays)

        with ungrouped(TransportError, PeerError, Refusal):
            async with trio.open_nursery() as nursery:
                if not await nursery.start(hold):
                    return
                if not is_new:
                    await held.wait()  # messages are on their way, and must not come to who does not hold
                if planned.due:
                    await self._deliver(route, planned, confirm)
                    await held.wait()
                    planned.was_told()
                    if not route.scope.cancel_called:  # else its record is that of a withdrawal now
                        await self._records.keep_installation(planned)

    async def _deliver(self, route: OverlayRoute, planned: TreeInstallation, confirm: Confirm) -> None:
        """Tell who is due; some top relays ahead, where somebody waits for their word.

        In answer to a parcel that holds others a relay's confirmation comes with those from below it. Who is
        told ahead is told without the host's card, which may not be there yet, and gets it with its branch.
        """
        installation, link = planned.installation, self._boxes.link(planned.installation.root)
        near = await self._shards.find(installation.day, installation.trunk, installation.copy)

        async def tell(relays: Iterable[RelayId], card: HostCard | None) -> None:
            await self._installer.deliver(
                installation.tree,
                near,
                relays,
                lambda relay: installation.install(self._profile, relay, card),
                heard,
                link,
            )

        ahead = trio.CancelScope()

        def heard(relays: set[RelayId]) -> None:
            confirm(relays)
            if relays:
                ahead.cancel()

        async def tell_ahead() -> None:
            with ahead:
                await tell(self._env.sample(list(tops), self._shards.manner.told_ahead), None)

        due, tops = sorted(planned.due), installation.tree.children.get(None, ())
        is_passed_on = link is not None and near.relay(link.host.id) is not None  # and takes no circuit each
        async with trio.open_nursery() as nursery:
            if is_passed_on and not route.ready.is_set() and len(tops) < len(due):
                nursery.start_soon(tell_ahead)
            if link is not None:
                await link.has_told.wait()
            await tell(due, link.standing.card if link is not None else None)
            ahead.cancel()

    async def _forget_lapsed(self, route: OverlayRoute) -> None:
        if not self._env.is_certain():
            return
        for key in list(route.planned):
            if self._calendar.lapse(key[0]) <= self._env.now():
                self._records.forget(route.planned.pop(key))
        await self._boxes.close_lapsed(route, self._days_wanted(route))
