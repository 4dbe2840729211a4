"""Audits: once a day and topic an owner asks a keeper whether its host has brought all of a day gone by.

Of one that is silent, or was away as that day ended, the next is asked. What lacks is then asked for
directly, of all keepers of the topic. A host that did not bring what most of them show is the second of its
list from then on; of what none of them has any more applications hear, and of a day of which none of them can
know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import trio

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.keepers.keeper_questions import KeeperQuestions, Places
from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.routes import OverlayRoutes
from hushcast_overlay.shards.shard_keeper import FAILURES
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Topic
from hushcast_protocol.overlay.host_audits import HostAudit, drawn_audit
from hushcast_protocol.overlay.keeper_frames import AskKept
from hushcast_protocol.overlay.kept_answers import KeptIds, last_epoch, shown_by_most
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

MAX_MISSED_TOLD = 256  # messages that one audit tells of as gaps; the rest another one does
LATE = 60.0  # seconds after its moment when an audit is not made: a daemon that slept would show its return


class Audits:
    """The audits of one daemon."""

    def __init__(
        self,
        routes: OverlayRoutes,
        boxes: OwnedBoxes,
        shards: Shards,
        lists: CandidateLists,
        questions: KeeperQuestions,
        context: Context,
    ) -> None:
        self._routes = routes
        self._boxes = boxes
        self._shards = shards
        self._calendar = shards.calendar
        self._lists = lists
        self._questions = questions
        self._env = context.env
        self._counters = context.counters
        self._spawn = context.spawn
        self._timetable = context.timetable

    def plan(self) -> None:
        """Plan the audits whose moments lie in this epoch and, as it ends, those of the next."""
        now = self._env.now()
        ends = self._calendar.epoch_start(self._calendar.epoch(now) + 1)
        for topic, audit, moment in self._drawn(self._calendar.day(now)):
            if now <= moment < ends:
                self._timetable.at(moment, self._spawn, self._audit_at, topic, audit, moment)
        self._timetable.at(ends, self.plan)

    def _drawn(self, today: int) -> list[tuple[Topic, HostAudit, float]]:
        """Return what is to be asked today, and when (Unix seconds): nothing where nobody keeps."""
        keeping = self._shards.keeping
        if not keeping.keepers:
            return []
        names: dict[Topic, bytes] = {}
        for route in self._routes.held:
            if route.box is not None:  # else it is its own host
                topic, name = route.wanted.interest.topic, route.wanted.name
                names[topic] = min(name, names.get(topic, name))
        start, length = self._calendar.day_start(today), self._calendar.day_seconds
        drawn = [(topic, drawn_audit(name, today, keeping.days)) for topic, name in names.items()]
        return [(topic, audit, start + audit.moment * length) for topic, audit in drawn if audit is not None]

    async def _audit_at(self, topic: Topic, audit: HostAudit, moment: float) -> None:
        routes = [route for route in self._routes.held if route.wanted.interest.topic == topic]
        if not routes or self._env.now() > moment + LATE:
            return
        try:
            await self._audit(routes, audit)
        except Exception:  # the disk, perhaps: what lacks still will be found another day
            self._counters.add("internal_errors")
            log.exception("an audit met an error of this program")

    async def _audit(self, routes: list[OverlayRoute], audit: HostAudit) -> None:
        trunk = (await routes[0].wanted.tokens(audit.day)).trunk
        try:
            places = await self._lists.audited_places(audit.day, trunk)
        except FAILURES as error:
            log.info("it is not known whom an audit asks", reason=str(error))
            return
        if not places:
            return
        self._counters.add("audits")
        question = AskKept(audit.day, trunk, None)
        shown = await self._first_shown(places, audit.place, question)
        asking = {route.wanted.name: route for route in routes if self._boxes.turns.asks(route, audit.day)}
        if shown and all(last_epoch(audit.day) in kept.away for kept in shown.values()):
            log.info("no keeper that answers was there as a day ended")
            for route in asking.values():
                route.wanted.lose(None)
        if not any((await _lacking(asking, shown.values())).values()):
            return
        others = {keeper: place for keeper, place in places.items() if keeper not in shown}
        shown |= await self._questions.ids(others, question)
        lacking = await _lacking(asking, shown.values())
        brought: set[bytes] = set()

        async def take(message: Message, without: Collection[RelayId]) -> None:
            brought.add(message.id)
            for route in asking.values():
                await route.take([message])

        wanted = set[bytes]().union(*lacking.values())
        is_whole = await self._questions.bring(audit.day, trunk, places, shown, wanted, take)
        sure = shown_by_most(shown, last_epoch(audit.day))
        for name, route in asking.items():
            came = {one for one in lacking[name] & brought if route.wanted.knows(one)}
            self._counters.add("messages_from_audits", len(came))
            if is_whole and (gone := (lacking[name] & sure) - brought):
                route.wanted.miss(sorted(gone)[:MAX_MISSED_TOLD])
            if came & sure:
                await self._boxes.turns.leave(route, audit.day)

    async def _first_shown(self, places: Places, place: int, question: AskKept) -> dict[RelayId, KeptIds]:
        """Ask the keeper at a place, and the next, until one answers that was there; return all answers."""
        keepers = list(places)
        shown: dict[RelayId, KeptIds] = {}
        for turn in range(len(keepers)):
            keeper = keepers[(place + turn) % len(keepers)]
            shown |= await self._questions.ids({keeper: places[keeper]}, question)
            if keeper in shown and last_epoch(question.day) not in shown[keeper].away:
                break
        return shown


async def _lacking(asking: Mapping[bytes, OverlayRoute], shown: Iterable[KeptIds]) -> dict[bytes, set[bytes]]:
    """Return for each route the ids that keepers show and that have not come, ours or not.

    Keepers may make up 60,000, which takes 30 ms of a processor for a route.
    """
    all_shown = set[bytes]().union(*(kept.ids for kept in shown))
    lacking = {}
    for name, route in asking.items():
        lacking[name] = {one for one in all_shown if not route.has(one)}
        await trio.lowlevel.checkpoint()
    return lacking
