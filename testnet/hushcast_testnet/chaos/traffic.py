"""Traffic: applications that publish and listen through the daemons' control sockets while those break."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

import trio

import hushcast
from hushcast_testnet.chaos.journal import Journal
from hushcast_testnet.inventory import Member

PATIENCE = 90.0  # seconds that an application waits for a receipt
_AGAIN = 0.2  # seconds before an application asks again for a daemon that is not there
_SIZES = (60, 60, 60, 3_000, 20_000)  # bytes; three of the padded sizes
_ACKNOWLEDGED = 0.5  # share of the messages after which an application acknowledges all so far


class ChaosTraffic:
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
            with suppress(hushcast.NoDaemon, hushcast.Refusal):
                async with (
                    # A fresh one each time: what was not acknowledged has to come again.
                    hushcast.connect(member.socket, timeout=None, reconnect=False) as daemon,
                    daemon.subscribe(self._topic, acknowledge="manual") as messages,
                ):
                    self._journal.note("listening", member.name)
                    if not started:
                        started = True
                        task_status.started()
                    await self._take(member, messages)
            if started:
                self._journal.note("left", member.name)
            await trio.sleep(_AGAIN)

    async def _take(self, member: Member, messages: hushcast.Messages) -> None:
        async for message in messages:
            self._journal.note("shown", member.name, message=message.id, cursor=message.cursor)
            if self._chance.random() < _ACKNOWLEDGED:
                await messages.acknowledge(message)
                self._journal.note("acknowledged", member.name, cursor=message.cursor)

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
        is_queued = False
        with trio.move_on_after(PATIENCE), suppress(hushcast.HushcastError):
            async with hushcast.connect(member.socket, timeout=None, reconnect=False) as daemon:
                publication = await daemon.enqueue(self._topic, payload, at_once=True)
                is_queued = True
                self._journal.note("queued", member.name, message=publication.id)
                await daemon.accepted(publication)
                self._journal.note("published", member.name, message=publication.id)
        if not is_queued:
            self._journal.note("refused", member.name)

    async def unsubscribe(self, member: Member) -> None:
        """End the run's subscription at a daemon."""
        async with hushcast.connect(member.socket) as daemon:
            await daemon.unsubscribe(self._topic)
