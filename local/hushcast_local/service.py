"""The service: what applications ask of a daemon, carried out by publisher, outbox and subscriber."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hushcast_local.devices.devices import Devices
from hushcast_local.inbox import InboxListener
from hushcast_local.inbox_records import InboxMessage, ReportedGap
from hushcast_local.outbox import Outbox, OutboxPublication, ReceiptedPublication
from hushcast_local.publisher import Publisher
from hushcast_local.subscriber import Subscriber
from hushcast_local.subscription import LocalSubscription
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import Predicate, write_where
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.devices.circle_secrets import HIDDEN_NAMES


class Service:
    """One daemon's publish/subscribe over a carrier."""

    def __init__(
        self, publisher: Publisher, subscriber: Subscriber, outbox: Outbox, devices: Devices
    ) -> None:
        self._publisher = publisher
        self.subscriber = subscriber
        self._outbox = outbox
        self.devices = devices

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        await self._publisher.load()
        await self.subscriber.load()
        await self.devices.load()

    async def durable(self) -> None:
        """Return once all that applications have told is on disk."""
        await self.subscriber.durable()

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> OutboxPublication:
        """Publish; return once somebody has given a receipt. The publication shows who gives more.

        `author` signs it inside the seal. Raises `NoReceiptYet` if the first attempts failed, for the outbox
        tries on; `Refusal` as `enqueue`.
        """
        return await self._publisher.publish(topic, content, author)

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
        """Publish; return once the message is durable in the outbox, or was before.

        Under cover it goes in the `next_round`, or is held as the daemon's settings say. Raises `Refusal`,
        and `UsageError` for too many tags.
        """
        return await self._publisher.enqueue(topic, content, author, at_once, token, tags, next_round)

    async def taken(self, token: bytes) -> OutboxPublication | ReceiptedPublication:
        """Return the publication with an application's token once it has a receipt.

        Raises `NoReceiptYet` when the first attempts have failed, `Refusal` where none is known.
        """
        publication = self._outbox.known(token)
        if publication is None:
            raise Refusal(
                "no such message is in the outbox: the network has taken it over, or it never was there"
            )
        await publication.taken()
        return publication

    def outbox(self) -> list[dict[str, Any]]:
        """Describe the publications that wait for a receipt, and those that were given up."""
        return [told for told in self._outbox.describe() if not told["topic"].startswith(HIDDEN_NAMES)]

    async def cancel(self, message_id: bytes) -> str | None:
        """Remove a publication from the outbox; return its topic's name, `None` if there is none."""
        return await self._outbox.cancel(message_id)

    async def subscribe(
        self,
        interest: Interest,
        since: int | None = None,
        terms: Mapping[str, Any] | None = None,
        past: float | None = None,
    ) -> InboxFeed:
        """Subscribe; return once messages reach this daemon, under cover before. Raises `Refusal`."""
        subscription = await self.subscriber.subscribe(interest, terms, since or 0, past=past)
        if "outlook" not in subscription.route.describe():
            await subscription.route.ready.wait()
        if subscription.refusal is not None:
            raise Refusal(subscription.refusal)
        await self.devices.note_begun(subscription)
        return InboxFeed(subscription, since)

    async def acknowledge(self, topic: Topic, cursor: int, predicate: Predicate | None = None) -> None:
        """Acknowledge all messages up to a cursor, of one subscription to a topic or of all to it.

        Durable on return. Raises `Refusal`, before any is acknowledged, where there is no subscription or one
        of them has not come to the cursor.
        """
        inboxes = [subscription.inbox for subscription in self.subscriber.find(topic, predicate)]
        if not inboxes:
            raise Refusal("there is no such subscription: `hushcast subscriptions` lists them")
        for inbox in inboxes:
            inbox.check_cursor(cursor)
        for inbox in inboxes:
            await inbox.acknowledge(cursor)

    async def coverage(
        self, topic: Topic, predicate: Predicate | None = None, losses: bool = False
    ) -> list[dict[str, Any]]:
        """Describe how much of the network reaches the subscriptions to a topic, or one of them.

        With `losses` also how many copies of probes each relay lost and passed on, by its name.
        """
        return [
            {"topic": topic.name, "where": write_where(held.interest.predicate)}
            | await held.route.coverage()
            | ({"losses": await _losses(held)} if losses else {})
            for held in self.subscriber.find(topic, predicate)
        ]

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None = None) -> bool:
        """End one subscription to a topic, or without a predicate all, planned ones too; tell of any."""
        was_planned = await self.devices.end(topic, predicate)
        return await self.subscriber.unsubscribe(topic, predicate) or was_planned

    def subscriptions(self) -> list[dict[str, Any]]:
        """Describe the subscriptions held."""
        return [
            {
                "handle": subscription.handle,
                "topic": subscription.interest.topic.name,
                "where": write_where(subscription.interest.predicate),
                "private": subscription.interest.topic.secret is not None,
                "attributes": [attribute.name for attribute in subscription.interest.topic.attributes],
            }
            | subscription.route.describe()
            | {
                "ready": subscription.route.ready.is_set(),
                "since": round(subscription.beginning.at, 3),
            }
            | subscription.inbox.describe()
            for subscription in self.devices.held
        ]

    def status(self) -> dict[str, Any]:
        """Describe how much is held for applications."""
        return {
            "subscriptions": len(self.devices.held),
            "planned": len(self.devices.plan),
            "outbox": len(self._outbox),
        }


async def _losses(held: LocalSubscription) -> dict[str, list[float]]:
    counts = sorted((await held.route.losses()).items())
    return {relay.hex(): [round(lost, 3), round(passed, 3)] for relay, (lost, passed) in counts}


class InboxFeed:
    """One application's view of a subscription of this daemon."""

    def __init__(self, subscription: LocalSubscription, since: int | None = None) -> None:
        described = subscription.route.describe()
        self.nodes: int = described.get("nodes", 0)
        self.by: str = described.get("by", "relay")
        told = [described[part] for part in ("outlook", "presence") if described.get(part)]
        self.outlook: str | None = "; ".join(told) or None
        self._listener: InboxListener = subscription.inbox.listen(since)

    @property
    def position(self) -> int:
        """The cursor behind which this feed goes on."""
        return self._listener.position

    async def next(self) -> tuple[int, InboxMessage] | ReportedGap | None:
        """Return the next message and its cursor, or a gap; `None` when the subscription ended."""
        return await self._listener.next()

    async def take(self, most: int) -> list[tuple[int, InboxMessage] | ReportedGap]:
        """Return at most so many next messages and their cursors, or a gap.

        Nothing when it all ended, and, once, when some were lost before they came.
        """
        return await self._listener.take(most)

    @property
    def is_over(self) -> bool:
        """Whether the subscription ended."""
        return self._listener.is_over

    def lost(self, ahead: bool = True) -> int | None:
        """Return how many messages were removed before this feed got them, since last asked.

        `None` where nobody knows. Without `ahead` only of those before what it got last.
        """
        return self._listener.lost(ahead)

    def shown(self, number: int, acknowledged: bool = False) -> None:
        """Note that the messages up to `number` were shown, or are not needed any more."""
        self._listener.shown(number, acknowledged)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
