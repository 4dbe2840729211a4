"""What has one answer: what a program asks a daemon, or has it do."""

from __future__ import annotations

from typing import Any

from hushcast import control_messages, descriptions, events
from hushcast.arguments import check_cursor, check_topic
from hushcast.descriptions import Finding, Subscription, Unsent
from hushcast.device_calls import DeviceCalls


class Questions(DeviceCalls):
    """The part of `Daemon` that is questions: each awaits `ask` alone, however that comes by its answer."""

    async def acknowledge(
        self, topic: str, cursor: int, *, where: str | None = None, timeout: float | None = None
    ) -> None:
        """Acknowledge all messages up to a cursor, of the subscription with this condition or of all to it.

        On return this is on the daemon's disk.
        """
        check_topic(topic, where)
        check_cursor(cursor)
        await self.ask(
            control_messages.AcknowledgeRequest(topic, cursor, where),
            control_messages.AcknowledgeAnswer,
            timeout,
        )

    async def unsubscribe(
        self, topic: str, *, where: str | None = None, timeout: float | None = None
    ) -> bool:
        """End the subscription with this condition, or all to the topic; return whether there was one."""
        check_topic(topic, where)
        return (
            await self.ask(
                control_messages.TopicUnsubscribeRequest(topic, where),
                control_messages.UnsubscribeAnswer,
                timeout,
            )
        ).existed

    async def subscriptions(self, *, timeout: float | None = None) -> list[Subscription]:
        """Return the subscriptions that the daemon holds, oldest first."""
        told = await self.ask(
            control_messages.SubscriptionsRequest(), control_messages.SubscriptionsAnswer, timeout
        )
        return [descriptions.subscription(one) for one in told.subscriptions]

    async def outbox(self, *, timeout: float | None = None) -> list[Unsent]:
        """Return the publications that wait for a relay's receipt, and those that were given up."""
        told = await self.ask(control_messages.OutboxRequest(), control_messages.OutboxAnswer, timeout)
        return [descriptions.unsent(one) for one in told.publications]

    async def cancel(self, message_id: str, *, timeout: float | None = None) -> str:
        """Take the publication with this id out of the outbox, and return its topic's name.

        If it was being handed over, a relay may have it all the same.
        """
        return (
            await self.ask(control_messages.CancelRequest(message_id), control_messages.CancelAnswer, timeout)
        ).topic

    async def coverage(
        self,
        topic: str,
        *,
        where: str | None = None,
        losses: bool = False,
        timeout: float | None = None,
    ) -> list[events.Coverage]:
        """Return how much of the network reaches the subscriptions to a topic, or one of them.

        With `losses`, `described["losses"]` has for each relay how many copies of probes it lost and passed
        on, on an overlay; for one that loses one size alone, or number of tokens, how many of these.
        """
        check_topic(topic, where)
        told = await self.ask(
            control_messages.CoverageRequest(topic, where, losses), control_messages.CoverageAnswer, timeout
        )
        return [events.coverage(one) for one in told.subscriptions]

    async def status(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Return the daemon's state, as `hushcast status --json` shows it."""
        return (
            await self.ask(control_messages.StatusRequest(), control_messages.StatusAnswer, timeout)
        ).status

    async def examine(self, *, timeout: float | None = None) -> list[Finding]:
        """Return what keeps the daemon from working, as `hushcast doctor` shows it."""
        return (
            await self.ask(control_messages.DoctorRequest(), control_messages.DoctorAnswer, timeout)
        ).findings
