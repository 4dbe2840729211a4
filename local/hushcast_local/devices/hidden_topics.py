"""Topics that a daemon has for itself: it listens to them and publishes on them as an application does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hushcast_local.inbox_records import ReportedGap
from hushcast_local.outbox import NoReceiptYet, Outbox
from hushcast_local.publisher import Publisher
from hushcast_local.subscriber import Subscriber
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.devices.circle_secrets import is_hidden_topic
from hushcast_runtime.logs import log
from hushcast_runtime.wording import span

Hear = Callable[[bytes], Awaitable[None]]
"""Takes a payload; raises `PeerError` where it is none of ours."""


class HiddenTopics:
    """What a daemon says and hears on topics that no application is shown."""

    def __init__(self, publisher: Publisher, subscriber: Subscriber, outbox: Outbox) -> None:
        self._publisher = publisher
        self._subscriber = subscriber
        self._outbox = outbox

    async def say(self, topic: Topic, payload: bytes) -> None:
        """Publish; return with the first receipt. Without one it is forgotten, and `Refusal` raised."""
        publication = await self._publisher.enqueue(topic, Content(payload), at_once=True)
        try:
            await publication.taken()
        except NoReceiptYet:
            await self._outbox.cancel(publication.id)
            raise

    async def open(self, topic: Topic, within: float | None = None) -> None:
        """Subscribe, and return once messages arrive; raise `Refusal`, also where they come too late.

        They do where they are needed `within` so many seconds, and the network brings none at once.
        """
        held = await self._subscriber.subscribe(Interest(topic))
        await held.route.ready.wait()
        if held.refusal is not None:
            raise Refusal(held.refusal)
        if within is not None and (outlook := held.route.describe().get("outlook")) is not None:
            await self.close(topic)
            raise Refusal(f"devices meet within {span(within)}, and here {outlook}")

    async def listen(self, topic: Topic, hear: Hear) -> None:
        """Subscribe, and let `hear` take each message once, until cancelled or the subscription ends."""
        held = await self._subscriber.subscribe(Interest(topic))
        listener = held.inbox.listen()
        try:
            while (arrival := await listener.next()) is not None:
                if isinstance(arrival, ReportedGap):
                    continue
                number, message = arrival
                try:
                    await hear(message.payload)
                except PeerError:
                    log.debug("a message among devices was none of theirs")
                listener.shown(number, acknowledged=True)
        finally:
            listener.close()

    async def close(self, topic: Topic) -> None:
        """Subscribe no more."""
        await self._subscriber.unsubscribe(topic, None)

    async def close_others(self, topics: list[Topic]) -> None:
        """Subscribe no more to topics of the daemon's own but these: a restart may have left some."""
        for held in self._subscriber.subscriptions:
            if is_hidden_topic(held.interest.topic) and held.interest.topic not in topics:
                await self.close(held.interest.topic)
