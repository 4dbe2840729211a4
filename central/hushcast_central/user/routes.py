"""Routes: the interests that one daemon keeps routed over the server, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import trio

from hushcast_central.user.pseudonym import Pseudonym, PseudonymRecords
from hushcast_central.user.receiver import CentralRoute, Receiver
from hushcast_central.user.upkeep import ReceiverUpkeep
from hushcast_central.user.withdrawals import PseudonymWithdrawals
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.central.profile import CentralProfile
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.context import Context
from hushcast_runtime.storage.past_days import PastDays, PastDaysRecords

EARLIEST_RENEWAL, LATEST_RENEWAL = 0.5, 0.25  # shares of a day before its end
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds before the next attempt where nobody answers

_EVERYBODY = bytes(16)  # the name of the one receiver that, as published, all routes share


class CentralRoutes:
    """All routes of one daemon."""

    def __init__(
        self,
        profile: CentralProfile,
        calendar: Calendar,
        upkeep: ReceiverUpkeep,
        withdrawals: PseudonymWithdrawals,
        records: PseudonymRecords,
        past: PastDaysRecords,
        context: Context,
    ) -> None:
        self._profile = profile
        self._calendar = calendar
        self._upkeep = upkeep
        self._withdrawals = withdrawals
        self._records = records
        self._past = past
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._routes: dict[bytes, CentralRoute] = {}
        self._receivers: dict[bytes, Receiver] = {}

    @property
    def held(self) -> list[CentralRoute]:
        """The routes held, oldest first."""
        return list(self._routes.values())

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, CentralRoute]:
        """Take up the routes of what is wanted, by name; have what a restart left of others forgotten."""
        past = await self._past.load()
        for one in wanted:
            self._join(one, past)
        for name in past.keys() - self._receivers.keys():
            self._past.forget(name)
        unwanted: list[Pseudonym] = []
        for pseudonym in await self._records.load():
            receiver = self._receivers.get(pseudonym.owner)
            if pseudonym.is_ending:
                self._withdrawals.begin(pseudonym)
            elif receiver is None:
                unwanted.append(pseudonym)
            else:
                receiver.pseudonyms[pseudonym.day] = pseudonym
        await self._withdrawals.end(unwanted)
        today = self._calendar.day(self._env.now())
        for route in self._routes.values():
            if (found := route.receiver.pseudonyms.get(today)) is not None and found.held:
                route.told = found.id
        for receiver in self._receivers.values():
            self._spawn(self._upkeep.run, receiver, True)
        return dict(self._routes)

    def keep(self, wanted: RoutedInterest) -> CentralRoute:
        """Begin to keep an interest routed."""
        known = len(self._receivers)
        route = self._join(wanted, {})
        if len(self._receivers) > known:
            self._spawn(self._upkeep.run, route.receiver, False)
        route.receiver.look()
        return route

    def look_back(self, route: CentralRoute) -> None:
        """Have what was published before brought, since when that is wanted."""
        self._upkeep.look_back(route.receiver)

    async def end(self, route: CentralRoute) -> None:
        """Hand in nothing more; durable on return. The server is told in the background."""
        if self._routes.pop(route.wanted.name, None) is None:
            return
        receiver = route.receiver
        del receiver.routes[route.wanted.name]
        route.silence()
        if route.told is not None:
            self._tracer.tell(ground_truth.Unsubscribed(route.topic, route.told))
        if receiver.routes:
            receiver.look()
            return
        del self._receivers[receiver.name]
        receiver.scope.cancel()
        self._past.forget(receiver.name)
        route.ended = list(receiver.pseudonyms.values())
        await self._withdrawals.end(route.ended)

    async def forgotten(self, route: CentralRoute) -> None:
        """Have the server forget a route that ended; return when it has, or did not answer.

        Of its pseudonyms that of the running day is withdrawn now, others at moments of their own: at one
        moment they would show as one subscription's.
        """
        if route.receiver.routes:
            await self._upkeep.update(route.receiver)
        today = self._calendar.day(self._env.now())
        async with trio.open_nursery() as nursery:
            for pseudonym in route.ended:
                if pseudonym.day == today:
                    nursery.start_soon(self._withdrawals.withdraw, pseudonym)

    def describe(self, route: CentralRoute) -> dict[str, Any]:
        """Return how many servers route to it today (`nodes`): 1, or 0; and that they are servers (`by`)."""
        pseudonym = route.receiver.pseudonyms.get(self._calendar.day(self._env.now()))
        return {"nodes": int(pseudonym is not None and route.is_covered(pseudonym)), "by": "server"}

    def _join(self, wanted: RoutedInterest, past: Mapping[bytes, PastDays]) -> CentralRoute:
        name = wanted.name if self._profile.own_pseudonyms else _EVERYBODY
        if (receiver := self._receivers.get(name)) is None:
            renewal = self._env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL)
            longest = min(LONGEST_PAUSE, self._calendar.lead)
            pauses = longest, self._calendar.lead  # who keeps may be short of room for longer
            backoffs = [Backoff(FIRST_PAUSE, pause, self._env.randomness) for pause in pauses]
            today = self._calendar.day(self._env.now())
            days = past.get(name) or PastDays(today, today, today + 1)
            receiver = self._receivers[name] = Receiver(name, renewal, backoffs[0], days, backoffs[1])
            self._past.keep_soon(name, days)
        route = CentralRoute(wanted, receiver)
        receiver.routes[wanted.name] = self._routes[wanted.name] = route
        return route
