"""Upkeep: makes a receiver's pseudonyms as days come, each receiver at moments of its own."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_central.user.credentials import CredentialsMaker
from hushcast_central.user.pseudonym import Pseudonym, PseudonymRecords
from hushcast_central.user.pseudonym_upkeep import PseudonymUpkeep
from hushcast_central.user.receiver import Receiver
from hushcast_central.user.token_registration import TokenRegistration
from hushcast_central.user.user_links import UserLinks
from hushcast_central.user.withdrawals import PseudonymWithdrawals
from hushcast_protocol.base import ground_truth
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

LOOK_EVERY = 60.0  # seconds between looks at the clock, which may be set


class ReceiverUpkeep:
    """Keeps the receivers of one daemon."""

    def __init__(
        self,
        links: UserLinks,
        credentials: CredentialsMaker,
        registering: TokenRegistration,
        tending: PseudonymUpkeep,
        withdrawals: PseudonymWithdrawals,
        records: PseudonymRecords,
        context: Context,
    ) -> None:
        self._links = links
        self._credentials = credentials
        self._registering = registering
        self._calendar = registering.calendar
        self._tending = tending
        self._past = tending.past
        self._withdrawals = withdrawals
        self._records = records
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn

    async def run(self, receiver: Receiver, resumed: bool) -> None:
        """Take up the pseudonyms of before, make others, forget those of days gone by; until cancelled."""
        with receiver.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._past.run, receiver)
                await self._keep(receiver, resumed)

    def look_back(self, receiver: Receiver) -> None:
        """See to it that what was before is brought, as far as that is wanted."""
        self._past.look(receiver)

    async def _keep(self, receiver: Receiver, resumed: bool) -> None:
        await self._drop_unreachable(receiver)
        for pseudonym in list(receiver.pseudonyms.values()):
            await self._registering.is_settled(receiver, pseudonym)
            self._spawn(self._tend, receiver, pseudonym, self._tending.own_moment())
        if resumed:
            await trio.sleep(self._tending.own_moment())
        while True:
            receiver.looks = trio.Event()
            self._past.look(receiver)
            self._forget_lapsed(receiver)
            pause = 0.0
            for day in self._days_wanted(receiver):
                if day not in receiver.pseudonyms:
                    pseudonym = receiver.pseudonyms[day] = await self._draw(receiver, day)
                    self._spawn(self._tend, receiver, pseudonym, pause)
                    # Two days at one moment would show as one subscription's.
                    left = self._calendar.day_start(day + 1) - self._env.now()
                    pause = self._env.uniform(0.0, max(0.0, left) / 2)
            wait = self._until_next_look(receiver)
            if not await self.update(receiver):
                wait = min(wait, receiver.backoff.next())
            with trio.move_on_after(wait):
                await receiver.looks.wait()

    async def update(self, receiver: Receiver) -> bool:
        """Tell the server what changed of the routes; return whether it confirmed all."""
        confirmed = True
        for pseudonym in list(receiver.pseudonyms.values()):
            if pseudonym.held and not await self._registering.is_settled(receiver, pseudonym):
                confirmed &= await self._tending.update(receiver, pseudonym)
        return confirmed

    async def _drop_unreachable(self, receiver: Receiver) -> None:
        """End the pseudonyms at proxies that the network has no more; what waits for them is lost."""
        gone = [one for one in receiver.pseudonyms.values() if self._links.find(one.proxy) is None]
        for pseudonym in gone:
            del receiver.pseudonyms[pseudonym.day]
            if pseudonym.held:
                self._past.note_lacking(receiver, pseudonym.day)
        if gone:
            log.warning("a proxy of a subscription is not in the network any more: using another")
            await self._withdrawals.end(gone)

    async def _tend(self, receiver: Receiver, pseudonym: Pseudonym, pause: float) -> None:
        gave_up = await self._tending.run(receiver, pseudonym, pause)
        if not gave_up or pseudonym.is_ending or receiver.pseudonyms.get(pseudonym.day) is not pseudonym:
            return
        # Nobody answered when it was new: another one, at another proxy.
        receiver.avoided = pseudonym.proxy
        del receiver.pseudonyms[pseudonym.day]
        await self._withdrawals.end([pseudonym])
        receiver.look()

    async def _draw(self, receiver: Receiver, day: int) -> Pseudonym:
        """Draw a pseudonym at a random proxy; durable before anybody hears of it, so that it can be ended."""
        proxies = self._links.of("deliveries")
        others = [proxy for proxy in proxies if proxy.key != receiver.avoided]
        proxy = self._env.sample(others or proxies, 1)[0]
        pseudonym = Pseudonym(receiver.name, proxy.key, await self._credentials.draw("subscribe", day))
        await self._records.keep(pseudonym)
        topics = {route.topic for route in receiver.routes.values()}
        topic = topics.pop() if len(topics) == 1 else None
        self._tracer.tell(ground_truth.Introduced(pseudonym.id, "subscribe", topic))
        return pseudonym

    def _until_next_look(self, receiver: Receiver) -> float:
        now = self._env.now()
        today = self._calendar.day(now)
        moments = [self._renews_at(receiver, today), self._calendar.day_start(today + 1)]
        moments += [self._calendar.lapse(day) for day in receiver.pseudonyms]
        return min([LOOK_EVERY, *(moment - now for moment in moments if moment > now)])

    def _days_wanted(self, receiver: Receiver) -> Iterable[int]:
        today = self._calendar.day(self._env.now())
        return (today, today + 1) if self._renews_at(receiver, today) <= self._env.now() else (today,)

    def _renews_at(self, receiver: Receiver, day: int) -> float:
        return self._calendar.day_start(day + 1) - receiver.renewal * self._calendar.day_seconds

    def _forget_lapsed(self, receiver: Receiver) -> None:
        for day in list(receiver.pseudonyms) if self._env.is_certain() else ():
            if self._calendar.lapse(day) <= self._env.now():
                pseudonym = receiver.pseudonyms.pop(day)
                self._past.note_lapsed(receiver, pseudonym)
                pseudonym.scope.cancel()
                self._records.forget(pseudonym)
