"""The publisher: seals a message and hands it to the carrier, with retries until there is a receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import trio

from hushcast_local.covered_publications import CoveredPublications
from hushcast_local.outbox import Outbox, OutboxPublication, ReceiptedPublication, Reseal
from hushcast_local.part_seals import PartSeals
from hushcast_local.second_looks import SecondLooks
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal, UsageError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.content.bodies import Content, compose, open_body
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Topic, parse_topic, write_link
from hushcast_runtime.carriers.carrier import Carrier, NeverTaken
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log

MAX_UNDER_WAY = 64  # publications being handed over at once; more wait their turn in the outbox
TRIED_DAYS = MAX_DAYS_KEPT  # after its own on which it is sealed anew; inboxes know ids for as long


class Publisher:
    """Publishes for the local applications.

    A publication leaves the outbox when an origin has given its receipt and the other drops of the same round
    have ended, with a receipt or without: one receipt suffices, the others are redundancy. One of a wide
    topic stays until there is a receipt from each of the topic's shards.
    """

    def __init__(
        self, carrier: Carrier, keys: TopicKeys, outbox: Outbox, looks: SecondLooks, context: Context
    ) -> None:
        self._carrier = carrier
        self._calendar = carrier.calendar
        self._keys = keys
        self._outbox = outbox
        self._looks = looks
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._turns = FewAtOnce(MAX_UNDER_WAY)
        self._covered: CoveredPublications | None = None
        if carrier.covering is not None:
            part_seals = PartSeals(keys)
            self._covered = CoveredPublications(carrier.covering, outbox, self._seal_for, part_seals, context)

    async def load(self) -> None:
        """Take up the publications that a restart interrupted."""
        for publication in await self._outbox.load():
            pause = self._env.uniform(0.0, self._carrier.manner.republish_within)
            publication.next_attempt = self._env.now() + pause
            self._spawn(self._keep, publication)
        await self._looks.load()

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> OutboxPublication:
        """Publish, and return with the first receipt; handing over to others goes on meanwhile.

        Raises `NoReceiptYet` when the first attempts have failed, and `Refusal` as `enqueue` does.
        """
        self._carrier.check_open()
        message = await self._sealed(topic, content, self._today, author)
        publication = self._put(topic, message, author)
        await publication.taken()
        return publication

    async def enqueue(
        self,
        topic: Topic,
        content: Content,
        author: Seed | None = None,
        at_once: bool = False,
        token: bytes | None = None,
        tags: Iterable[str] = (),
        next_round: bool = False,
    ) -> OutboxPublication | ReceiptedPublication:
        """Publish, and return once it is durable in the outbox, before the first drop.

        A publication whose `token` is known is not made again. Raises `Refusal` if the content is too large
        or the outbox full, or if nobody will ever take it; with `at_once`, for a caller that waits, also if
        there is nobody to hand it to; `UsageError` for too many `tags`, by which carriers may find its
        subscriptions. Under cover it goes in the `next_round`, or is held as the daemon's settings say.
        """
        kept = self._known(token)
        if kept is None:
            self._check_open(at_once)
            message = await self._sealed(topic, content, self._today, author, tags)
            # It may have been asked for again while the topic's key was made.
            kept = self._known(token) or self._put(topic, message, author, tags, token, next_round)
        await self._outbox.durable()
        return kept

    def _check_open(self, at_once: bool) -> None:
        try:
            self._carrier.check_open()
        except Refusal as refusal:
            if at_once or isinstance(refusal, NeverTaken):
                raise

    def _known(self, token: bytes | None) -> OutboxPublication | ReceiptedPublication | None:
        return None if token is None else self._outbox.known(token)

    @property
    def _today(self) -> int:
        return self._calendar.day(self._env.now())

    async def _sealed(
        self, topic: Topic, content: Content, day: int, author: Seed | None, tags: Iterable[str] = ()
    ) -> Message:
        tokens = await self._keys.published(topic, day, content.values, tags)
        body_key = await self._keys.of_bodies(topic, day)
        return compose(body_key, day, tokens, content, self._env.randomness, author)

    def _put(
        self,
        topic: Topic,
        message: Message,
        author: Seed | None,
        tags: Iterable[str] = (),
        token: bytes | None = None,
        next_round: bool = False,
    ) -> OutboxPublication:
        if self._covered is not None:
            self._covered.check_fits(message)
        reseal = _reseal_of(topic, author, tags)
        publication = self._outbox.put(topic.name, message, token, topic.width, reseal)
        if self._covered is not None:
            publication.cut = self._covered.cut(message, topic, tags)
            self._covered.begin(publication, next_round)
        # Before anything is waited for: the application may leave, and must not leave it half published.
        self._spawn(self._keep, publication)
        return publication

    async def _keep(self, publication: OutboxPublication) -> None:
        """Hand it over, with retries, until the network has taken it or its time is over."""
        await self._outbox.durable()
        if self._covered is not None:
            await self._covered.keep(publication)
            return
        manner = self._carrier.manner
        backoff = Backoff(manner.first_retry, manner.longest_retry, self._env.randomness)
        with publication.scope:
            while True:
                if publication.next_attempt is not None:
                    await trio.sleep(max(0.0, publication.next_attempt - self._env.now()))
                    publication.next_attempt = None
                await self._reseal(publication)
                is_everywhere = False
                if self._env.now() < self._calendar.lapse(publication.message.day):
                    async with self._turns:
                        is_everywhere = await self._drop_all(publication)
                await trio.lowlevel.checkpoint_if_cancelled()  # it may have been taken back in this turn
                if publication.origins and (is_everywhere or not publication.width):
                    self._outbox.leave(publication)
                    self._looks.begin(publication)
                    break
                end = self._end(publication)
                if self._env.now() >= end and self._env.is_certain():
                    log.warning("nobody took a message in time")
                    self._counters.add("publications_given_up")
                    self._outbox.give_up(publication)
                    publication.settled.set()
                    break
                now = self._env.now()
                publication.next_attempt = now + backoff.next()
                if now < end:
                    publication.next_attempt = min(end, publication.next_attempt)
                publication.waits = True
                self._outbox.note(publication)
                publication.settled.set()
        if publication.attempts:
            self._tracer.tell(
                ground_truth.Published(
                    publication.topic,
                    publication.message.id,
                    publication.origins,
                    round(self._env.now() - publication.since, 6),
                )
            )

    def _end(self, publication: OutboxPublication) -> float:
        """Return the moment at which it is given up."""
        day = publication.message.day
        if publication.reseal is not None:
            day = max(day, self._calendar.day(publication.since) + TRIED_DAYS)
        return self._calendar.lapse(day)

    async def _reseal(self, publication: OutboxPublication) -> None:
        """Seal it for the day that it is, if that is a later one than it was sealed for.

        A relay may have the earlier one and have lost its receipt: whoever gets both shows one.
        """
        now = self._env.now()
        is_later = self._env.is_certain() and self._today > publication.message.day
        if is_later and now < self._end(publication):
            await self._seal_for(publication, self._today)

    async def _seal_for(self, publication: OutboxPublication, day: int) -> None:
        """Seal it for another day, as far as it can be."""
        if (reseal := publication.reseal) is None:
            return
        try:
            topic = parse_topic(reseal.link)
            key = await self._keys.of_bodies(topic, publication.message.day)
            content = replace(open_body(key, publication.message), first_id=publication.id)
            message = await self._sealed(topic, content, day, None, reseal.tags)
        except (AuthenticationError, DecodeError, UsageError):
            publication.reseal = None  # its record is damaged: it goes as it is, or not at all
            return
        self._outbox.replace(publication, message)

    async def _drop_all(self, publication: OutboxPublication) -> bool:
        """Drop it; return whether nothing was left out."""
        try:
            handover = _Handover(publication, self._outbox)
            message, taken = publication.message, publication.origins
            await self._carrier.hand_over(message, handover, taken, publication.width)
        except Refusal as refusal:
            publication.reason = refusal.reason
            return False
        return True


def _reseal_of(topic: Topic, author: Seed | None, tags: Iterable[str]) -> Reseal | None:
    # A signature holds for one seal, and its author's key is not the daemon's to keep.
    return Reseal(write_link(topic), tuple(tags)) if author is None else None


class _Handover:
    """Notes at a publication how its drops go."""

    def __init__(self, publication: OutboxPublication, outbox: Outbox) -> None:
        self._publication = publication
        self._outbox = outbox

    def note_try(self, taker: bytes) -> None:
        self._publication.attempts += 1

    def note_receipt(self, taker: bytes) -> None:
        self._publication.origins.append(taker)
        self._outbox.note(self._publication)
        self._publication.settled.set()

    def note_failure(self, reason: str) -> None:
        self._publication.reason = reason
