"""Devices: what a daemon does for a person who has several of them."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_local.devices.subscription_plan import SubscriptionPlan
from hushcast_local.subscriber import Subscriber
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.predicates import write_where
from hushcast_protocol.content.topics import write_link
from hushcast_protocol.devices.carried_links import CarriedLink
from hushcast_runtime.context import Context


class Devices:
    """What applications ask of a daemon about devices."""

    def __init__(self, subscriber: Subscriber, calendar: Calendar, context: Context) -> None:
        self._subscriber = subscriber
        self.plan = SubscriptionPlan(subscriber, calendar, context)

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        await self.plan.load()

    def links(self) -> list[CarriedLink]:
        """Return the links of all subscriptions, to be carried to another device."""
        return [
            CarriedLink(
                write_link(held.interest.topic),
                write_where(held.interest.predicate),
                None if held.terms is None else dict(held.terms),
            )
            for held in self._subscriber.subscriptions
        ]

    async def bring(self, links: Sequence[CarriedLink], within: float | None = None) -> tuple[int, int]:
        """Plan subscriptions to all links that are not held; return how many those are, and how many are.

        Each begins at a moment drawn within so many seconds, or within the plan's usual time. Durable on
        return. Raises `UsageError` where one is no link, and `Refusal` where they are too many.
        """
        wanted = [(link.interest(), link.terms) for link in links]
        new = [(interest, terms) for interest, terms in wanted if not self.plan.holds(interest)]
        for interest, terms in new:
            await self.plan.add(interest, terms, within)
        return len(new), len(wanted) - len(new)
