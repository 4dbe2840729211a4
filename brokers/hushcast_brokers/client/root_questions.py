"""Questions to the root for days gone by: what subscriptions may lack of them comes over unnamed links, once.

Each day of a subscription is asked for over a circuit of its own, at a drawn moment, the oldest first: the
root sees that somebody wants a topic's day, and neither who attaches where nor which days are one daemon's.
A subscription that hides among others does not ask: it would be shown by that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import trio

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.client.attachment_records import AttachedSubscription
from hushcast_brokers.client.attachments import Attachments
from hushcast_brokers.client.brokers_route import BrokersRoute
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.errors import DecodeError, HushcastError, PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    AskPast,
    Forward,
    FromAbove,
    Receipt,
    decode_from_above,
    past_asked,
)
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.logs import log
from hushcast_runtime.storage.past_days import PastDaysRecords
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0  # seconds before the next question where the root does not answer
LOOK_EVERY = 60.0  # seconds between looks at the clock, which may be set
MAX_ANSWER = 8 * 1024 * 1024  # bytes in one answer: a root sends 512 KiB and at most 15 messages more
MAX_PAST = 256 * 1024 * 1024  # bytes taken of one day of a topic: a root keeps an eighth of 1 GiB at most


class RootQuestions:
    """The questions of one daemon."""

    def __init__(
        self,
        parts: ClientParts,
        records: PastDaysRecords,
        routes: Mapping[bytes, BrokersRoute],
        attachments: Attachments,
    ) -> None:
        """`routes` are those held, at any moment."""
        self._parts = parts
        self._records = records
        self._routes = routes
        self._attachments = attachments
        self._calendar = parts.network.calendar
        self._env = parts.context.env
        self._counters = parts.context.counters
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, parts.context.env.randomness)
        self._looks = trio.Event()
        self._difficulty = 0  # bits that the root last asked for

    def resume(self) -> None:
        """Note, after a restart, what may lack of the days since, and what is wanted of those before."""
        for route in self._routes.values():
            if self._env.is_certain():
                route.past.look(self._today(), ())
            self.look_back(route)

    def look_back(self, route: BrokersRoute) -> None:
        """Note that all is wanted since a day."""
        route.past.want(route.wanted.since, self._today())
        self._keep(route)

    def note_accepted(self, route: BrokersRoute, asked: AttachedSubscription) -> None:
        """Note that an edge broker routes something from now on: of a day that has begun some may lack."""
        now, began = self._env.now(), route.past.began
        days = [asked.item.day] if isinstance(asked.item, LayeredWord) else self._calendar.open_days(now)
        for day in days:
            has_begun = now > self._calendar.day_start(day)
            if has_begun and day >= began and (asked.was_accepted or day > began):
                route.past.lacking.add(day)
                self._keep(route)

    async def run(self) -> None:
        """Ask, one question after the other, and see who is there when a day lapses; until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._judge)
            while True:
                self._looks = trio.Event()
                if (found := self._next()) is None:
                    with trio.move_on_after(LOOK_EVERY):
                        await self._looks.wait()
                    continue
                await trio.sleep(self._env.uniform(0.0, self._parts.root_now().manner.days_apart))
                if await self._bring(*found):
                    self._backoff.reset()
                else:
                    await trio.sleep(self._backoff.next())

    async def _judge(self) -> None:
        """Whenever a day lapses, note whether all that was to come of it can have come."""
        while True:
            day = self._calendar.open_days(self._env.now()).start
            await self._env.sleep_until(self._calendar.lapse(day))
            # A link needs some time to bring what waited.
            needed = min(self._parts.root_now().manner.there_for, self._calendar.grace / 2)
            was_there = self._attachments.reached_for() >= needed
            for route in self._routes.values() if self._env.is_certain() else ():
                if not was_there and day >= route.past.began:
                    route.past.lacking.add(day)
                route.past.seen = max(route.past.seen, day + 1)
                self._keep(route)

    def _keep(self, route: BrokersRoute) -> None:
        self._records.keep_soon(route.wanted.name, route.past)
        self._looks.set()

    def _today(self) -> int:
        return self._calendar.day(self._env.now())

    def _next(self) -> tuple[BrokersRoute, int] | None:
        """Return what to ask for, if anything: the oldest day; one that is open where its messages come."""
        kept = self._parts.tree.days_kept
        first = self._today() - kept if kept else math.inf
        found = []
        for route in self._routes.values():
            if self._env.is_certain() and route.past.drop_before(first):
                self._keep(route)
                if kept and route.terms.k == 1:
                    route.wanted.lose(None)  # it was away for longer than anything is kept
            if route.ready.is_set() and route.terms.k == 1:
                found += [(day, route) for day in route.past.lacking if self._is_time(day, first)]
        day, of = min(found, key=lambda one: one[0], default=(0, None))
        return None if of is None else (of, day)

    def _is_time(self, day: int, first: float) -> bool:
        return first <= day and (day == self._today() or self._calendar.lapse(day) <= self._env.now())

    async def _bring(self, route: BrokersRoute, day: int) -> bool:
        """Ask for a day; return whether all that is kept of it has come."""
        try:
            word = self._parts.reading.kept_word(await route.wanted.tokens(day))
            await self._ask(route, day, word)
        except (TransportError, PeerError, Refusal) as error:
            log.info("a day gone by was not brought yet", reason=str(error))
            if not isinstance(error, Refusal):
                self._parts.root_contact.note(worked=False)
            return False
        except HushcastError as error:  # the disk, perhaps: the messages come again
            log.warning("messages were not taken", reason=str(error))
            self._counters.add("internal_errors")
            return False
        except Exception:
            log.exception("messages met an error of this program")
            self._counters.add("internal_errors")
            return False
        route.past.lacking.discard(day)
        if self._routes.get(route.wanted.name) is route:
            self._keep(route)
        self._counters.add("past_days_brought")
        return True

    async def _ask(self, route: BrokersRoute, day: int, word: bytes) -> None:
        root = self._parts.root_now()
        # No view: what this daemon holds of the tree would tell it from others.
        link = Link.initiate(
            self._parts.network.id, root.key, self._env.randomness, MAX_BROKER_FRAME, wire=root.spoken()
        )
        channel, _ = await open_channel(
            self._parts.transport, root.address, self._env.isolation(), link, decode_from_above
        )
        try:
            after, size = route.brought.get(day), 0
            while messages := await self._page(channel, day, word, after):
                size += sum(len(one.body) for one in messages)
                if size > MAX_PAST:
                    raise DecodeError("the root shows more of a day than any keeps")
                await route.take(messages)
                after = route.brought[day] = messages[-1].id
        finally:
            await channel.aclose()
        route.brought.pop(day, None)
        self._parts.root_contact.note(worked=True)

    async def _page(
        self, channel: Channel[FromAbove], day: int, word: bytes, after: bytes | None
    ) -> list[Message]:
        """Return what comes next; none where there is no more."""
        asked = AskPast(day, word, after, None)
        if self._difficulty:
            asked = await self._stamped(asked)
        messages, receipt = await self._answer(channel, asked)
        if receipt.verdict == "stamp":
            self._difficulty = receipt.difficulty
            messages, receipt = await self._answer(channel, await self._stamped(asked))
        self._difficulty = receipt.difficulty
        if receipt.verdict != "accepted":
            raise Refusal(f"the root does not show what it keeps: {receipt.verdict}")
        return messages

    async def _stamped(self, asked: AskPast) -> AskPast:
        epoch = self._calendar.epoch(self._env.now())
        root, content = self._parts.network.root, past_asked(asked)
        stamp = await self._env.compute(mint, root, epoch, content, self._difficulty, self._env.randomness)
        return AskPast(asked.day, asked.word, asked.after, stamp)

    async def _answer(self, channel: Channel[FromAbove], asked: AskPast) -> tuple[list[Message], Receipt]:
        """Return what the root says; raise `PeerError` for what was not asked for."""
        await channel.send(asked)
        found: list[Message] = []
        last, within, size = asked.after or b"", self._parts.root_now().manner.receipt_within, 0
        while True:
            frame = await channel.one(within)
            if isinstance(frame, Receipt):
                return found, frame
            if not isinstance(frame, Forward):
                raise DecodeError("the root answered what nobody asked")
            message = frame.message
            check_message(message)
            if (message.day, message.tokens[0]) != (asked.day, asked.word) or message.id <= last:
                raise DecodeError("the root shows what nobody asked for")
            last = message.id
            found.append(message)
            size += len(message.body)
            if size > MAX_ANSWER:
                raise DecodeError("the root shows too much at once")
