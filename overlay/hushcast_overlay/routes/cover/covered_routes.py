"""Covered routes: the subscriptions of a daemon under cover, whose trees lead to the boxes of its lanes.

Relays hear of them by letters alone, and answer nothing: of a letter that is listed its relay has carried out
what it was told, of those below it nobody hears. Who is told of a tree is told once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import trio

from hushcast_overlay.routes.arrivals import Arrivals
from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_overlay.routes.cover.heard_day_records import HeardDayRecords
from hushcast_overlay.routes.cover.kept_lanes import KeptLanes, Lane
from hushcast_overlay.routes.cover.parcel_letters import ParcelLetters
from hushcast_overlay.routes.route import (
    EARLIEST_RENEWAL,
    LATEST_RENEWAL,
    OverlayRoute,
    TreeInstallation,
)
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.trees import Trees
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.content.messages import Message
from hushcast_protocol.cover.heard_days import HeardDays
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.overlay.host_list import HostList
from hushcast_protocol.overlay.leases import MAX_BOX_LEASES
from hushcast_protocol.overlay.letter_parcels import LetterParcel, letter_parcels, letters_of
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

MAX_COVERED_ROUTES = LANES * MAX_BOX_LEASES // 2  # of one daemon; a box has leases of two days
_FIRST_PAUSE = 10.0  # seconds until what could not be planned is tried again; nothing of it is seen


@dataclass(eq=False)
class CoveredRoute:
    """A route, and what is on its way to have relays follow it."""

    route: OverlayRoute
    lane: int
    """Which of the three lanes brings it."""
    days: HeardDays
    """Of which days it lacks nothing, as far as is known."""
    under_way: dict[bytes, int] = field(default_factory=dict)
    """Errands that are not over, and the day that each is of, by their keys."""
    parcels: dict[tuple[int, int], list[LetterParcel]] = field(default_factory=dict)
    """Of each tree that is being told, by day and number, what did not go into a letter yet."""


class CoveredRoutes:
    """All routes of one daemon under cover."""

    def __init__(
        self,
        profile: Profile,
        trees: Trees,
        lanes: KeptLanes,
        messages: CoveredMessages,
        letters: ParcelLetters,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._profile = profile
        self._trees = trees
        self._lanes = lanes
        self._messages = messages
        self._letters = letters
        self._records = records
        self._context = context
        self._calendar: Calendar = messages.calendar
        self._arrivals = Arrivals(self._calendar, context)
        self._heard = HeardDayRecords(context.store)
        self._env = context.env
        self._routes: dict[bytes, CoveredRoute] = {}

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, CoveredRoute]:
        """Take up the routes of what is wanted, by name; forget what a restart left of others.

        What led to boxes of a time without cover is forgotten with them: it lapses where it is.
        """
        for name, box in await self._records.load_boxes():
            await self._records.drop_box(name, box)
        installed, withdrawals = await self._records.load_installations()
        boxes = [lane.box for lane in self._lanes.lanes]
        names = {one.name for one in wanted}
        days = await self._heard.load(names)
        kept: list[TreeInstallation] = []
        for gone in withdrawals:
            self._records.forget(gone)
        for tree in installed:
            if tree.name in names and any(map(tree.leads_to, boxes)):
                kept.append(tree)
            else:
                self._records.forget(tree)
        for one in wanted:
            planned = [held for held in kept if held.name == one.name]
            lanes = (lane for lane, box in enumerate(boxes) if planned and planned[-1].leads_to(box))
            held = self._begun(one, next(lanes, None), days.get(one.name))
            for tree in planned:
                tree.is_held = tree.nodes > 0
                held.route.planned[tree.key] = tree
            self._be_ready(held.route)
        return dict(self._routes)

    def keep(self, wanted: RoutedInterest) -> CoveredRoute:
        """Begin to keep an interest routed; raise `Refusal` where the lanes have no room for it."""
        if len(self._routes) >= MAX_COVERED_ROUTES:
            raise Refusal(
                f"under cover a daemon has {MAX_COVERED_ROUTES} subscriptions: unsubscribe from one"
            )
        return self._begun(wanted, None, None)

    def _begun(self, wanted: RoutedInterest, lane: int | None, days: HeardDays | None) -> CoveredRoute:
        """Begin a route, in the lane that has the fewest unless it has one."""
        if lane is None:
            taken = [held.lane for held in self._routes.values()]
            lane = min(range(LANES), key=taken.count)
        held = self._routes[wanted.name] = CoveredRoute(OverlayRoute(wanted), lane, days or HeardDays())
        self._context.spawn(self._live, held)
        return held

    async def end(self, held: CoveredRoute) -> None:
        """Hand in nothing more, say nothing more; durable on return. Trees lapse with their days."""
        route = held.route
        if self._routes.pop(route.wanted.name, None) is None:
            return
        route.stop()
        route.ready.set()
        for key in held.under_way:
            self._messages.recall(key)
        for planned in route.planned.values():
            self._records.forget(planned)
        self._heard.forget(route.wanted.name)
        await self._context.store.write()

    def describe(self, held: CoveredRoute) -> dict[str, Any]:
        """Return how many relays were told of today's trees, and for people `outlook` and `presence`."""
        nodes = min((planned.nodes for planned in held.route.on(self._today)), default=0)
        day = self._days_wanted(held.route)[0]
        letters, keys = 0, {key for key, told in held.under_way.items() if told == day}
        if held.route.ready.is_set():
            keys.clear()  # those are of relays that bring more
        elif not any(planned.key in held.parcels for planned in held.route.on(day)):
            letters = self._letters_a_day
        else:
            letters = sum(len(held.parcels.get(planned.key, ())) for planned in held.route.on(day))
        outlook = self._messages.reads_outlook(keys, letters, _topic(held), day)
        presence = self._messages.presence.told
        return {"nodes": nodes, "outlook": outlook + self._lanes.outlook(held.lane), "presence": presence}

    def stir(self) -> None:
        """Have all routes looked at: lanes are there, or others."""
        for held in self._routes.values():
            held.route.stirred.set()

    def judge(self, number: int) -> None:
        """Take notice that the blocks of a round come: of days that are over applications hear what may lack.

        It is called before these are opened.
        """
        for held in self._routes.values():
            heard = self._lanes.heard_until(held.lane)
            lacks = held.days.judge(number, heard, self._lanes.rules, self._calendar)
            if lacks is not None:
                self._heard.keep(held.route.wanted.name, held.days)
            if lacks:
                held.route.wanted.lose(None)

    async def take(self, number: int, messages: Iterable[Message]) -> None:
        """Hand in what came by a lane, to every route that it is for; durable on return."""
        host = self._lanes.lanes[number].host.relay
        came = list(messages)
        for held in [one for one in self._routes.values() if one.lane == number]:
            route = held.route
            new = [one for one in came if not route.wanted.knows(one.id)]
            if mine := [one for one in new if await self._is_of(route, one)]:
                await self._arrivals.take(route, mine, host)

    async def _is_of(self, route: OverlayRoute, message: Message) -> bool:
        """Tell by its trunk whether a message is of a route's topic; of its day keys may be long gone."""
        if not self._arrivals.is_timely(message.day):
            return False
        tokens = await route.wanted.tokens(message.day)
        return message.tokens[0] == tokens.trunk

    async def _live(self, held: CoveredRoute) -> None:
        route = held.route
        backoff = Backoff(_FIRST_PAUSE, self._calendar.lead, self._env.randomness)
        with route.scope:
            while True:
                route.stirred = trio.Event()
                try:
                    await self._see_to(held)
                    backoff.reset()
                    pause = self._until_next_look(route)
                except (PeerError, Refusal) as error:
                    log.info("a tree has to wait under cover", reason=str(error))
                    pause = backoff.next()
                with trio.move_on_after(pause):
                    await route.stirred.wait()

    async def _see_to(self, held: CoveredRoute) -> None:
        """Have the trees of today, and from a drawn moment on those of tomorrow, planned and told."""
        route = held.route
        self._forget_lapsed(held)
        self._be_ready(route)
        if not self._lanes.lanes or self._messages.begins is None:
            return
        lane = self._lanes.lanes[held.lane]
        route.end = RouteBox(lane.box, HostList((lane.host,)))
        for day in self._days_wanted(route):
            self._letters.check_whole(day)
            for number in range(self._profile.trees):
                planned = route.planned.get((day, number))
                if planned is None or not planned.leads_to(lane.box):
                    planned = await self._trees.plan(route, day, number)
                    if held.days.forget(day):
                        self._heard.keep(route.wanted.name, held.days)  # in the same commit
                    await self._records.keep_installation(planned)
                    route.planned[planned.key] = planned
                await self._tell(held, lane, planned)

    async def _tell(self, held: CoveredRoute, lane: Lane, planned: TreeInstallation) -> None:
        """Have the host told first, then, once it was, each relay of a tree: else messages would go back."""
        if not planned.is_held:
            if planned.installation.day not in held.under_way.values():
                self._hold(held, lane, planned)
            return
        if planned.key not in held.parcels:
            made, relays = planned.installation, set(planned.unconfirmed)
            instructions = {relay: made.install(self._profile, relay) for relay in relays}
            try:
                parcels = await self._env.compute(letter_parcels, made.tree, relays, instructions)
            except Refusal as refusal:
                held.route.wanted.refuse(f"under cover {refusal}")
                held.route.ready.set()
                return
            held.parcels[planned.key] = parcels
        waiting = held.parcels[planned.key]
        while waiting and self._messages.has_room(len(held.under_way), len(self._routes)):
            self._tell_by(held, planned, waiting.pop(0))
        if waiting and not held.under_way:  # else it is looked at when one of these is over
            raise Refusal("too many letters wait")

    def _hold(self, held: CoveredRoute, lane: Lane, planned: TreeInstallation) -> None:
        asked = planned.installation.hold(self._profile)

        def end(is_done: bool) -> None:
            held.under_way.pop(errand.key, None)
            if is_done:
                planned.is_held = True
            held.route.stirred.set()

        errand = self._letters.hold(lane, end, self._lanes.note_told, asked.day, asked.lease, asked.elements)
        self._messages.send(errand, False, asked.day, _topic(held))
        held.under_way[errand.key] = asked.day

    def _tell_by(self, held: CoveredRoute, planned: TreeInstallation, parcel: LetterParcel) -> None:
        day, made = planned.installation.day, planned.installation
        instructions = {relay: made.install(self._profile, relay) for relay in parcel.told}

        def end(is_done: bool) -> None:
            held.under_way.pop(errand.key, None)
            if is_done and not held.route.scope.cancel_called:
                planned.confirm(set(parcel.told))
                self._context.spawn(self._records.keep_installation, planned)
                self._be_ready(held.route)
                self._note_told(held, day)
            if any(held.parcels.values()):
                held.route.stirred.set()

        errand = self._letters.tell(parcel, instructions, end)
        self._messages.send(errand, False, day, _topic(held))
        held.under_way[errand.key] = day

    def _be_ready(self, route: OverlayRoute) -> None:
        if any(planned.reaches_root for planned in route.on(self._today)):
            route.ready.set()

    def _note_told(self, held: CoveredRoute, day: int) -> None:
        if all(planned.reaches_root for planned in held.route.on(day)):
            is_ahead = self._env.now() < self._calendar.day_start(day)
            if held.days.tell(day, is_ahead):
                self._heard.keep(held.route.wanted.name, held.days)

    @property
    def _today(self) -> int:
        return self._calendar.day(self._env.now())

    def _days_wanted(self, route: OverlayRoute) -> list[int]:
        """Return the days whose trees are told now: not this one's where its letters would come too late."""
        today, now = self._today, self._env.now()
        if self._renews_at(route, today) > now:
            return [today]
        is_late = now + self._letters_take > self._calendar.day_start(today + 1)
        return [today + 1] if is_late and not route.on(today) else [today, today + 1]

    def _renews_at(self, route: OverlayRoute, day: int) -> float:
        """Return when the day after is told: at a moment drawn, early enough for all of its letters.

        Where these take a day it is the day's beginning, which is the same for all.
        """
        if route.on(day + 1):
            return -math.inf
        drawn_on, moment = route.renews
        if drawn_on != day:
            length = self._calendar.day_seconds
            latest = min(1.0, max(LATEST_RENEWAL, self._letters_take / length))
            earliest = min(1.0, latest + EARLIEST_RENEWAL - LATEST_RENEWAL)
            moment = self._calendar.day_start(day + 1) - self._env.uniform(latest, earliest) * length
            route.renews = day, moment
        return moment

    @property
    def _letters_a_day(self) -> int:
        """How many letters one subscription's trees take, about."""
        return letters_of(self._letters.relays, self._profile.depth) * self._profile.trees

    @property
    def _letters_take(self) -> float:
        """Seconds from now on in which a day's letters of all subscriptions are dealt with, as a rule."""
        return self._messages.letters_take(self._letters_a_day, max(1, len(self._routes)))

    def _until_next_look(self, route: OverlayRoute) -> float:
        now, today = self._env.now(), self._today
        looks = [self._renews_at(route, today), self._calendar.day_start(today + 1)]
        return max(1.0, min(look for look in looks if look > now) - now)

    def _forget_lapsed(self, held: CoveredRoute) -> None:
        if not self._env.is_certain():
            return
        planned = held.route.planned
        for key in [one for one in planned if self._calendar.lapse(one[0]) <= self._env.now()]:
            self._records.forget(planned.pop(key))
            held.parcels.pop(key, None)


def _topic(held: CoveredRoute) -> str:
    """Return the topic in whose rounds a route's letters go: its own, of nothing that is published."""
    return f"reads {held.route.wanted.name.hex()}"
