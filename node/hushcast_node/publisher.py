"""The publisher: seals a message and drops it at random relays, each over a circuit of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import structlog
import trio

from hushcast_node.connector import Connector
from hushcast_node.rosters import RosterKeeper
from hushcast_node.topic_keys import TopicKeys
from hushcast_node.tracing import Tracer
from hushcast_protocol.bodies import Content, compose
from hushcast_protocol.errors import PeerError, Refusal
from hushcast_protocol.frames import Drop, Receipt
from hushcast_protocol.messages import Message
from hushcast_protocol.profile import Profile
from hushcast_protocol.roster import Relay
from hushcast_protocol.secrets import Seed
from hushcast_protocol.tokens import published_tokens
from hushcast_protocol.topics import Topic
from hushcast_protocol.wire import RelayId
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError

ATTEMPTS = 3  # circuits for one drop: another origin where none answers
RECEIPT_TIMEOUT = 30.0  # seconds from the drop to its receipt
MAX_UNDER_WAY = 64  # publications being dropped at once; more are refused, not piled up

log = structlog.get_logger("publisher")


@dataclass
class Publication:
    """A message on its way: the origins that gave a receipt, and why others did not."""

    message: Message
    origins: list[RelayId] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    accepted: trio.Event = field(default_factory=trio.Event)
    """Set with the first receipt, or when all attempts have failed."""


class Publisher:
    """Publishes for the local applications."""

    def __init__(
        self,
        profile: Profile,
        rosters: RosterKeeper,
        connector: Connector,
        keys: TopicKeys,
        env: Environment,
        tracer: Tracer,
        nursery: trio.Nursery,
    ) -> None:
        self._profile = profile
        self._rosters = rosters
        self._connector = connector
        self._keys = keys
        self._env = env
        self._tracer = tracer
        self._nursery = nursery
        self._under_way = 0

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Publication:
        """Publish, and return once a relay has given its receipt; the other drops go on meanwhile.

        Raises `Refusal` where there is no roster, the content is too large, or no relay accepts.
        """
        roster = self._rosters.current()
        if not roster.origins:
            raise Refusal("no relay takes messages yet: relays are origins from their second epoch on")
        if self._under_way >= MAX_UNDER_WAY:
            raise Refusal("too many messages are being published at once: wait for receipts")
        asked = self._env.now()
        # Uniform over all relays, the publisher's own included: to leave it out would name it in time.
        pool = self._env.sample(roster.origins, len(roster.origins))
        day = self._rosters.calendar.day(self._env.now())
        key = await self._keys.get(topic, day)
        tokens = published_tokens(key, topic, content.values, self._env.randomness)
        message = compose(key, day, tokens, content, self._env.randomness, author)
        publication = Publication(message)
        origins = [roster.relays[relay] for relay in pool]
        self._nursery.start_soon(self._drop_all, topic, publication, origins, asked)
        await publication.accepted.wait()
        if not publication.origins:
            raise Refusal(publication.refusals[-1])
        return publication

    async def _drop_all(
        self, topic: Topic, publication: Publication, pool: list[Relay], asked: float
    ) -> None:
        self._under_way += 1
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(min(self._profile.origins, len(pool))):
                    nursery.start_soon(self._drop, publication, pool)
        finally:
            self._under_way -= 1
            publication.accepted.set()
        self._tracer.tell(
            "published",
            topic=topic.name,
            message=publication.message.id,
            origins=publication.origins,
            took=round(self._env.now() - asked, 6),
        )

    async def _drop(self, publication: Publication, pool: list[Relay]) -> None:
        for _ in range(ATTEMPTS):
            if not pool:
                return
            origin = pool.pop()
            try:
                answer = await self._connector.drop(origin, Drop(publication.message), RECEIPT_TIMEOUT)
            except (TransportError, PeerError) as error:
                log.info("an origin gave no receipt", reason=str(error))
                publication.refusals.append(f"no relay gave a receipt: {error}")
                continue
            if isinstance(answer, Receipt) and answer.verdict == "accepted":
                publication.origins.append(origin.id)
                publication.accepted.set()
                return
            verdict = answer.verdict if isinstance(answer, Receipt) else "form"
            publication.refusals.append(f"relays refuse the message: {verdict}")
