"""Traffic: applications that publish and listen through the daemons' control sockets while those break."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import trio

from hushcast.conversation import Conversation, NoDaemon, ask
from hushcast.words import (
    Acknowledge,
    Acknowledged,
    Delivered,
    Failed,
    Publish,
    Published,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from hushcast_testnet.chaos.journal import Journal
from hushcast_testnet.inventory import Member

PATIENCE = 90.0  # seconds that an application waits for a receipt
_AGAIN = 0.2  # seconds before an application asks again for a daemon that is not there
_SIZES = (60, 60, 60, 3_000, 20_000)  # bytes; three of the padded sizes
_ACKNOWLEDGED = 0.5  # share of the messages after which an application acknowledges all so far


class Traffic:
    """Everything that applications do during one run, on a topic of the run's own."""

    def __init__(self, topic: str, journal: Journal, chance: random.Random) -> None:
        self._topic = topic
        self._journal = journal
        self._chance = chance

    async def listen(
        self, member: Member, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Subscribe, and listen until cancelled, through every absence of the daemon.

        Reports started once the subscription is installed. Some messages are acknowledged, some never are.
        """
        started = False
        while True:
            try:
                async with ask(_socket(member), Subscribe(self._topic)) as conversation:
                    if isinstance(await conversation.next(), Subscribed):
                        self._journal.note("listening", member.name)
                        if not started:
                            started = True
                            task_status.started()
                        await self._take(member, conversation)
            except NoDaemon:
                self._journal.note("left", member.name)
            await trio.sleep(_AGAIN)

    async def _take(self, member: Member, conversation: Conversation) -> None:
        while not isinstance(event := await conversation.next(), Failed | Unsubscribed):
            if not isinstance(event, Delivered):
                continue  # what other subscribers got, or what was removed, is for the verdict to find out
            self._journal.note("shown", member.name, message=event.id, cursor=event.cursor)
            if self._chance.random() < _ACKNOWLEDGED:
                async with ask(_socket(member), Acknowledge(self._topic, event.cursor)) as asking:
                    if isinstance(await asking.next(), Acknowledged):
                        self._journal.note("acknowledged", member.name, cursor=event.cursor)

    async def publish(self, members: Sequence[Member], rate: float, seconds: float) -> None:
        """Publish `rate` messages a second by random daemons; return when all were answered or given up."""
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                end = trio.current_time() + seconds
                while trio.current_time() < end:
                    nursery.start_soon(self._publish, self._chance.choice(members))
                    await trio.sleep(self._chance.expovariate(rate))
                scope.deadline = trio.current_time() + PATIENCE

    async def _publish(self, member: Member) -> None:
        payload = self._chance.randbytes(self._chance.choice(_SIZES))
        told = None
        with trio.move_on_after(PATIENCE), suppress(NoDaemon):
            async with ask(_socket(member), Publish(self._topic, payload, tell="each")) as conversation:
                while isinstance(answer := await conversation.next(), Published):
                    told = answer.receipt
                    kind = "queued" if told == "queued" else "published"
                    self._journal.note(kind, member.name, message=answer.id)
                    if kind == "published":
                        return
        if told is None:
            self._journal.note("refused", member.name)

    async def unsubscribe(self, member: Member) -> None:
        """End the run's subscription at a daemon."""
        async with ask(_socket(member), Unsubscribe(self._topic)) as conversation:
            await conversation.next()


def _socket(member: Member) -> Path:
    assert member.socket is not None
    return Path(member.socket)
