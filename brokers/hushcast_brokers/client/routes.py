"""Routes: the interests that one daemon keeps routed over brokers, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import trio

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.client.attachment_records import AttachedSubscription
from hushcast_brokers.client.attachments import Attachments
from hushcast_brokers.client.brokers_route import BrokersRoute
from hushcast_brokers.client.root_questions import RootQuestions
from hushcast_brokers.client.subscription_terms import read_terms
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.brokers.bogus_filters import price
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import BrokerVerdict
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.logs import log
from hushcast_runtime.storage.past_days import PastDays, PastDaysRecords

FORGOTTEN_WITHIN = 30.0  # seconds that an ended route waits for its edge broker; the rest is done later

_REASONS: dict[BrokerVerdict, str] = {
    "level": "too few subscribers stand behind this condition: ask for a lower k, widen the condition, or say"
    " what is to be done otherwise (`--otherwise`)",
    "bogus": "bogus filters or sources would deceive nobody here: take another --condition or --otherwise"
    " (docs/brokers.md says where they help)",
    "quota": "the edge broker has no room for more: unsubscribe from something, or ask its operator",
    "community": "the edge broker is not in this daemon's community, so it cannot count who else subscribes:"
    " subscribe without `--k`, or name one that is, as `edge` under [brokers]",
    "unknown": "the edge broker serves only whom it lists: `hushcast status --json` shows the key to list",
}

_PASSING: tuple[BrokerVerdict, ...] = ("tree", "day")
"""Why nothing is wrong: it is asked again under the tree, or for the day, of then."""


class BrokersRoutes:
    """All routes of one daemon."""

    def __init__(self, parts: ClientParts) -> None:
        self._calendar = parts.network.calendar
        self._context = parts.context
        self._reading = parts.reading
        self._env = parts.context.env
        self._tracer = parts.context.tracer
        self._routes: dict[bytes, BrokersRoute] = {}
        self.attachments = Attachments(parts, self._take, self._changed, self._refused, self._accepted)
        self._past = PastDaysRecords(parts.context.store)
        self._questions = RootQuestions(parts, self._past, self._routes, self.attachments)

    @property
    def held(self) -> list[BrokersRoute]:
        """The routes held, oldest first."""
        return list(self._routes.values())

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, BrokersRoute]:
        """Take up the routes of what is wanted, by name; have what a restart left of others forgotten."""
        await self._reading.load()
        await self.attachments.load()
        past = await self._past.load()
        for one in wanted:
            days = past.pop(one.name, None) or self._no_past()
            route = self._routes[one.name] = BrokersRoute(one, read_terms(one.terms), days, is_new=False)
            asked = self.attachments.asked(one.name)
            for part in asked:
                route.terms, route.is_told = part.terms, part.is_accepted
            if not self._reading.resume(one, route.terms, asked):
                self._context.spawn(self._begin, route)
        for name in past:
            self._past.forget(name)
        await self._settle()
        self._questions.resume()
        self._context.spawn(self._reading.run, self._settle)
        self._context.spawn(self._questions.run)
        return dict(self._routes)

    def keep(self, wanted: RoutedInterest) -> BrokersRoute:
        """Begin to keep an interest routed; raise `Refusal` for terms that are none, or exclude its past."""
        terms = read_terms(wanted.terms)
        self._reading.check(terms)
        if wanted.since is not None and terms.k > 1:
            raise Refusal(
                "who asks for the past of a topic does not hide among others: leave `since` or `--k` away"
            )
        route = BrokersRoute(wanted, terms, self._no_past(), is_new=True)
        self._routes[wanted.name] = route
        self.look_back(route)
        self._context.spawn(self._begin, route)
        return route

    def look_back(self, route: BrokersRoute) -> None:
        """Have what was published before brought, since when that is wanted."""
        self._questions.look_back(route)

    async def end(self, route: BrokersRoute) -> None:
        """Hand in nothing more; durable on return. The edge broker is told in the background."""
        if self._routes.pop(route.wanted.name, None) is None:
            return
        self._reading.forget(route.wanted.name)
        self._past.forget(route.wanted.name)
        route.silence()
        route.asked = self.attachments.asked(route.wanted.name)
        if route.is_told:
            self._tracer.tell(ground_truth.Unsubscribed(route.topic, route.wanted.name))
        await self._settle()

    async def forgotten(self, route: BrokersRoute) -> None:
        """Return when edge brokers have forgotten a route that ended, or did not answer."""
        with trio.move_on_after(FORGOTTEN_WITHIN):
            for asked in route.asked:
                await asked.gone.wait()

    def describe(self, route: BrokersRoute) -> dict[str, Any]:
        """Return how many edge brokers route to it (`nodes`): 1, or 0.

        Where it, or the edge broker, asks that others stand behind it, also how many (`k`), and whether
        anything is shown `outside` of the edge broker that brings its messages; none while it is not known.
        Where something else may be shown, what that costs at most: `rows` and `excess` (`TermsPrice`).
        """
        asked = self._asked(route)
        found: dict[str, Any] = {
            "nodes": int(self._reading.is_routed(asked)),
            "by": "edge broker",
        }
        if (k := self._k(route, asked)) > 1:
            found["k"] = k
            found["outside"] = asked[-1].is_shown if asked else None
        terms = route.terms
        if terms.k > 1 and terms.otherwise in ("bogus", "generalise"):
            found["otherwise"] = terms.otherwise
            found |= price(Filter.of(route.wanted.interest), terms.condition, terms.otherwise)._asdict()
        return found

    def hides(self, route: BrokersRoute) -> bool:
        """Tell whether anybody asks that an interest is hidden among others."""
        return self._k(route, self._asked(route)) > 1

    def _k(self, route: BrokersRoute, asked: list[AttachedSubscription]) -> int:
        return max(route.terms.k, *(one.k or 1 for one in asked), 1)

    def _asked(self, route: BrokersRoute) -> list[AttachedSubscription]:
        current = self.attachments.current
        return current.asked_for(route.wanted.name) if current is not None else []

    async def _begin(self, route: BrokersRoute) -> None:
        await self._reading.learn(route.wanted, route.terms)
        if self._routes.get(route.wanted.name) is not route:
            self._reading.forget(route.wanted.name)  # it ended meanwhile
        await self._settle()

    async def _settle(self) -> None:
        await self.attachments.settle(self._reading.wishes())

    def _changed(self) -> None:
        """Find out whose messages come from now on."""
        for route in self._routes.values():
            asked = self._asked(route)
            if not any(one.is_accepted for one in asked):
                continue
            route.is_new = False
            if self._reading.is_routed(asked):
                route.ready.set()
            if not route.is_told:
                route.is_told = True
                self._tracer.tell(ground_truth.Subscribed(route.topic, route.wanted.name))

    def _accepted(self, asked: AttachedSubscription) -> None:
        """Hear that an edge broker routes something from now on."""
        if (route := self._routes.get(asked.route)) is not None:
            self._questions.note_accepted(route, asked)

    def _no_past(self) -> PastDays:
        today = self._calendar.day(self._env.now())
        return PastDays(today, today, today + 1)

    def _refused(self, asked: AttachedSubscription, verdict: BrokerVerdict) -> bool:
        """Hear that an edge broker does not take a subscription; return whether that is the end of it."""
        if (route := self._routes.get(asked.route)) is None or self._reading.may_lack(asked):
            return True
        if verdict in _PASSING:
            return False
        if not route.is_new:
            log.warning("the edge broker does not take a subscription now: trying again", reason=verdict)
            return False
        del self._routes[asked.route]
        self._reading.forget(asked.route)
        self._past.forget(asked.route)
        route.wanted.refuse(_REASONS.get(verdict, "the edge broker does not take this subscription"))
        route.silence()
        return True

    async def _take(self, messages: list[Message]) -> None:
        """Give each route its messages; durable on return."""
        found: dict[bytes, list[Message]] = {}
        for message in messages:
            for name, inner in self._opened(message):
                found.setdefault(name, []).append(inner)
        for route in list(self._routes.values()):
            if met := found.get(route.wanted.name):
                await route.take(met)

    def _opened(self, message: Message) -> list[tuple[bytes, Message]]:
        """Return whose a message is, as it was handed over; nobody's unless it is whole, and its day open."""
        try:
            check_message(message)
            found = list(self._reading.opened(message))
        except PeerError:
            self._context.counters.add("deliveries_refused")
            return []
        is_open = not self._env.is_certain() or self._env.now() < self._calendar.lapse(message.day)
        self._context.counters.add("deliveries_refused", int(not is_open))
        return found if is_open else []
