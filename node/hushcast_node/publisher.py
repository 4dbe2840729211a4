"""The publisher: seals a message and drops it at random relays until one takes it over."""

from __future__ import annotations

from collections.abc import Callable, Container

import structlog
import trio

from hushcast_node.connector import Connector
from hushcast_node.outbox import Outbox, Publication
from hushcast_node.rosters import RosterKeeper
from hushcast_node.topic_keys import TopicKeys
from hushcast_node.tracing import Tracer
from hushcast_protocol.bodies import Content, compose
from hushcast_protocol.errors import PeerError, Refusal
from hushcast_protocol.frames import Drop, Receipt
from hushcast_protocol.profile import Profile
from hushcast_protocol.roster import Relay
from hushcast_protocol.secrets import Seed
from hushcast_protocol.tokens import published_tokens
from hushcast_protocol.topics import Topic
from hushcast_protocol.wire import RelayId
from hushcast_runtime.backoff import Backoff
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError

ATTEMPTS = 3  # circuits for one drop: another origin where none answers
LONGEST_DELAY = 3.0  # seconds at random before the second and the third, so that they do not show as one
RECEIPT_TIMEOUT = 30.0  # seconds from the drop to its receipt
MAX_UNDER_WAY = 64  # publications being dropped at once; more wait their turn in the outbox
FIRST_RETRY, LONGEST_RETRY = 30.0, 600.0  # seconds after which the outbox tries again; doubled each time
RESUME_WITHIN = 10.0  # seconds after a restart in which what waits is dropped, each at a moment of its own

log = structlog.get_logger("publisher")


class Publisher:
    """Publishes for the local applications.

    A publication leaves the outbox when an origin has given its receipt and the other drops of the same round
    have ended, with a receipt or without: the first receipt is what counts, the others are redundancy.
    """

    def __init__(
        self,
        profile: Profile,
        rosters: RosterKeeper,
        connector: Connector,
        shunned: Callable[[], Container[RelayId]],
        keys: TopicKeys,
        env: Environment,
        outbox: Outbox,
        counters: Counters,
        tracer: Tracer,
        nursery: trio.Nursery,
    ) -> None:
        """`shunned` are the relays that seem to lose messages."""
        self._shunned = shunned
        self._profile = profile
        self._rosters = rosters
        self._connector = connector
        self._keys = keys
        self._env = env
        self._outbox = outbox
        self._counters = counters
        self._tracer = tracer
        self._nursery = nursery
        self._turns = trio.CapacityLimiter(MAX_UNDER_WAY)

    async def load(self) -> None:
        """Take up the publications that a restart interrupted."""
        for publication in await self._outbox.load():
            publication.next_attempt = self._env.now() + self._env.uniform(0.0, RESUME_WITHIN)
            self._nursery.start_soon(self._keep, publication)

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Publication:
        """Publish, and return once a relay has given its receipt; the other drops go on meanwhile.

        Raises `NotYetTaken` when the first attempts have failed, and `Refusal` as `enqueue` does.
        """
        publication = await self.enqueue(topic, content, author, at_once=True)
        await publication.taken()
        return publication

    async def enqueue(
        self, topic: Topic, content: Content, author: Seed | None = None, at_once: bool = False
    ) -> Publication:
        """Publish, and return once it is durable in the outbox, before the first drop.

        Raises `Refusal` where the content is too large or the outbox full; with `at_once` also where there is
        no relay to drop at, for whoever waits is better told than queued.
        """
        if at_once:
            self._origins()
        day = self._rosters.calendar.day(self._env.now())
        key = await self._keys.get(topic, day)
        tokens = published_tokens(key, topic, content.values, self._env.randomness)
        message = compose(key, day, tokens, content, self._env.randomness, author)
        publication = await self._outbox.put(topic.name, message)
        self._nursery.start_soon(self._keep, publication)
        return publication

    async def _keep(self, publication: Publication) -> None:
        """Drop it, again and again, until a relay has taken it or its day is over."""
        lapse = self._rosters.calendar.lapse(publication.message.day)
        backoff = Backoff(FIRST_RETRY, LONGEST_RETRY, self._env.randomness)
        with publication.scope:
            while True:
                if publication.next_attempt is not None:
                    await trio.sleep(max(0.0, publication.next_attempt - self._env.now()))
                    publication.next_attempt = None
                if self._env.now() < lapse:
                    async with self._turns:
                        await self._drop_all(publication)
                if publication.origins:
                    self._outbox.leave(publication)
                    break
                if self._env.now() >= lapse:
                    log.warning("no relay took a message before its day was over")
                    self._counters.add("publications_given_up")
                    self._outbox.give_up(publication)
                    publication.settled.set()
                    break
                publication.next_attempt = min(lapse, self._env.now() + backoff.next())
                self._outbox.note(publication)
                publication.settled.set()
        if publication.attempts:
            self._tracer.tell(
                "published",
                topic=publication.topic,
                message=publication.id,
                origins=publication.origins,
                took=round(self._env.now() - publication.since, 6),
            )

    def _origins(self) -> list[Relay]:
        """Return the relays to drop at; raise `Refusal` where there is none."""
        roster = self._rosters.current()
        if not roster.origins:
            raise Refusal("no relay takes messages yet: relays are origins from their second epoch on")
        return [roster.relays[relay] for relay in roster.origins]

    async def _drop_all(self, publication: Publication) -> None:
        """Drop it once for each origin wanted that has given no receipt yet, all at the same time."""
        try:
            passed_over = self._shunned()
            origins = [
                origin
                for origin in self._origins()
                if origin.id not in publication.origins and origin.id not in passed_over
            ]
        except Refusal as refusal:
            publication.reason = refusal.reason
            return
        # Uniform over all relays, the publisher's own included: to leave it out would name it in time.
        pool = self._env.sample(origins, len(origins))
        wanted = self._profile.origins - len(publication.origins)
        async with trio.open_nursery() as nursery:
            for _ in range(min(wanted, len(pool))):
                nursery.start_soon(self._drop, publication, pool)

    async def _drop(self, publication: Publication, pool: list[Relay]) -> None:
        for attempt in range(ATTEMPTS):
            if not pool:
                return
            origin = pool.pop()
            if attempt:
                await trio.sleep(self._env.uniform(0.0, LONGEST_DELAY))
            publication.attempts += 1
            try:
                answer = await self._connector.drop(origin, Drop(publication.message, None), RECEIPT_TIMEOUT)
            except (TransportError, PeerError) as error:
                log.info("an origin gave no receipt", reason=str(error))
                publication.reason = f"no relay gave a receipt: {error}"
                continue
            if isinstance(answer, Receipt) and answer.verdict == "accepted":
                publication.origins.append(origin.id)
                self._outbox.note(publication)
                publication.settled.set()
                return
            verdict = answer.verdict if isinstance(answer, Receipt) else "form"
            publication.reason = f"relays refuse the message: {verdict}"
