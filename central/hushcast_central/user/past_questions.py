"""Questions for days gone by: what a receiver may lack of them comes by pseudonyms of their own, once.

Each day is asked for by a new pseudonym, through a proxy drawn anew, at a drawn moment, the oldest first: the
server sees that somebody wants a topic's day, and not which days are one subscription's. A day is done with
once the server itself says that all it keeps of it was acknowledged. A proxy can put another token into a
question, of which nothing is kept: so where nothing came, another proxy is asked, too.
"""

from __future__ import annotations

import math

import trio

from hushcast_central.user.attachments import UserAttachments
from hushcast_central.user.credentials import CredentialsMaker
from hushcast_central.user.pseudonym import Pseudonym, PseudonymRecords
from hushcast_central.user.receiver import CentralRoute, Receiver
from hushcast_central.user.token_registration import TokenRegistration
from hushcast_central.user.user_links import UserLinks
from hushcast_central.user.withdrawals import PseudonymWithdrawals
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.errors import HushcastError, PeerError, Refusal
from hushcast_protocol.central.frames import AttachAnswer
from hushcast_protocol.central.kept_tokens import kept_token
from hushcast_protocol.central.network import Proxy
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.past_days import PastDaysRecords
from hushcast_runtime.transports.base import TransportError

LOOK_EVERY = 60.0  # seconds between looks at the clock, which may be set


class PastQuestions:
    """The questions of one daemon."""

    def __init__(
        self,
        links: UserLinks,
        credentials: CredentialsMaker,
        registering: TokenRegistration,
        attachments: UserAttachments,
        withdrawals: PseudonymWithdrawals,
        records: PseudonymRecords,
        context: Context,
    ) -> None:
        self._links = links
        self._credentials = credentials
        self._registering = registering
        self._calendar = registering.calendar
        self._attachments = attachments
        self._withdrawals = withdrawals
        self._records = records
        self._days = PastDaysRecords(context.store)
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer

    def note_registered(self, receiver: Receiver, pseudonym: Pseudonym, again: bool) -> None:
        """Note that the server routes to a pseudonym from now on, or once `again` as it was forgotten."""
        day = pseudonym.day
        has_begun = self._env.now() > self._calendar.day_start(day)
        if again or (has_begun and day > receiver.past.began):
            self.note_lacking(receiver, day)

    def note_lapsed(self, receiver: Receiver, pseudonym: Pseudonym) -> None:
        """Note that a pseudonym's day is over."""
        lapse = self._calendar.lapse(pseudonym.day)
        slack = min(self._links.manner.there_for, self._calendar.grace / 30)
        if not pseudonym.held or pseudonym.left_at < lapse - slack:
            self.note_lacking(receiver, pseudonym.day)

    def note_lacking(self, receiver: Receiver, day: int) -> None:
        """Note that something of a day may be missing."""
        receiver.past.lacking.add(day)
        self._days.keep_soon(receiver.name, receiver.past)
        receiver.past_looks.set()

    def look(self, receiver: Receiver) -> None:
        """Note the days that went by since the last look, and what is wanted of those before it began."""
        past, today = receiver.past, self._calendar.day(self._env.now())
        before = past.seen, past.whole_from, len(past.lacking)
        if self._env.is_certain():
            past.look(today, receiver.pseudonyms)
        for route in receiver.routes.values():
            past.want(route.wanted.since, today)
        if (past.seen, past.whole_from, len(past.lacking)) != before:
            self._days.keep_soon(receiver.name, past)
            receiver.past_looks.set()

    async def run(self, receiver: Receiver) -> None:
        """Bring what is lacking, one day after the other, until cancelled."""
        for route in list(receiver.routes.values()):
            await route.ready.wait()
        while True:
            receiver.past_looks = trio.Event()
            day = self._next(receiver)
            if day is None:
                with trio.move_on_after(LOOK_EVERY):
                    await receiver.past_looks.wait()
                continue
            await trio.sleep(self._env.uniform(0.0, self._links.manner.days_apart))
            if not receiver.routes:
                return  # it ended meanwhile
            if await self._bring(receiver, day):
                receiver.past.lacking.discard(day)
                self._days.keep_soon(receiver.name, receiver.past)
                receiver.past_backoff.reset()
            else:
                await trio.sleep(receiver.past_backoff.next())

    def _next(self, receiver: Receiver) -> int | None:
        """Return the day to ask for, if any; one that is not over only where what is left of it comes."""
        now, past, kept = self._env.now(), receiver.past, self._links.days_kept
        first = self._calendar.day(now) - kept if kept else math.inf
        if self._env.is_certain() and past.drop_before(first):
            self._days.keep_soon(receiver.name, past)
            for route in receiver.routes.values() if kept else ():
                route.wanted.lose(None)  # it was away for longer than anything is kept
        known = receiver.pseudonyms
        days = [
            day
            for day in past.lacking
            if first <= day and (self._calendar.lapse(day) <= now or (day in known and known[day].held))
        ]
        return min(days, default=None)

    async def _bring(self, receiver: Receiver, day: int) -> bool:
        """Ask for a day; return whether all that is kept of it has come."""
        [route] = receiver.routes.values()  # hardened, as where anything is kept, each has its own
        proxy = self._drawn(receiver, day)
        today = self._calendar.day(self._env.now())
        credentials = await self._credentials.draw("subscribe", today)
        # Ending from the beginning: whatever becomes of it, the server is told to forget it.
        pseudonym = Pseudonym(receiver.name, proxy.key, credentials, is_ending=True, past=day)
        await self._records.keep(pseudonym)
        self._tracer.tell(ground_truth.Introduced(pseudonym.id, "subscribe", route.topic))
        try:
            has_all = await self._ask(receiver, route, pseudonym)
            return has_all and self._is_believed(receiver, pseudonym)
        except (TransportError, PeerError, Refusal) as error:
            log.info("a day gone by was not brought yet", reason=str(error))
        except HushcastError as error:  # the disk, perhaps: the messages come again
            log.warning("messages were not taken", reason=str(error))
            self._counters.add("internal_errors")
        except Exception:
            log.exception("messages met an error of this program")
            self._counters.add("internal_errors")
        finally:
            self._withdrawals.begin(pseudonym)
        return False

    async def _ask(self, receiver: Receiver, route: CentralRoute, pseudonym: Pseudonym) -> bool:
        token = kept_token(pseudonym.brings, (await route.tokens(pseudonym.brings)).trunk)
        proxy = self._links.proxy(pseudonym.proxy)
        for turn in range(self._links.manner.day_turns):
            async with self._links.open(proxy) as talk:
                if not turn:
                    await self._registering.ask_past(talk, pseudonym, token)
                answer = (await talk.ask(pseudonym.credentials.attach()))[0]
                if not isinstance(answer, AttachAnswer):
                    raise Refusal(f"an attachment was refused: {answer.verdict}")
                quiet = self._links.manner.day_quiet_for
                await self._attachments.serve(talk, answer, receiver, pseudonym, quiet)
            async with self._links.open(proxy) as talk:
                if await self._registering.has_all(talk, pseudonym, token):
                    return True
        return False

    def _drawn(self, receiver: Receiver, day: int) -> Proxy:
        """Return whom to ask through: another one than last time where nothing of the day came then."""
        proxies = self._links.of("deliveries")
        if receiver.found_empty is not None and receiver.found_empty[0] == day and len(proxies) > 1:
            proxies = [proxy for proxy in proxies if proxy.key != receiver.found_empty[1]]
        return self._env.sample(proxies, 1)[0]

    def _is_believed(self, receiver: Receiver, pseudonym: Pseudonym) -> bool:
        """Tell whether a day is done with: something of it came, or nothing did twice."""
        day, empty = pseudonym.brings, receiver.found_empty
        is_believed = pseudonym.has_brought or (empty is not None and empty[0] == day)
        receiver.found_empty = None if is_believed else (day, pseudonym.proxy)
        self._counters.add("past_days_brought", int(is_believed))
        return is_believed
