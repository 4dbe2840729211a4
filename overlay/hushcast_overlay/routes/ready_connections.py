"""Ready connections: opened to relays drawn at random before there is anything to hand in there.

A first contact is most of what a publication waits for. One set is for what a daemon publishes, and one for
each subscription's probes: so the age of a connection tells a relay nothing of what else its daemon does.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.ready_slots import ReadyRule, ReadySlot, ReadySlots
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel


class ReadyConnection(ReadySlot):
    """A slot, and the connection that may live in it: one is dialled, once."""

    def __init__(self, relay: RelayId, ends: float) -> None:
        """`ends` is by trio's clock."""
        super().__init__(relay, ends)
        self._life = trio.CancelScope(deadline=ends)
        self._silence = trio.CancelScope()
        self._over = trio.Event()
        self._channel: Channel[Receipt] | None = None

    async def hold(self, relay: Relay, connector: Connector) -> None:
        """Dial, and hold the connection until it is claimed, its time is over, or anything comes over it.

        Whoever sends before it was asked would learn how far away and how patient this end is.
        """
        is_claimed = False
        try:
            with self._life:
                channel = self._channel = await connector.unnamed(relay.id, relay.address, decode_receipt)
                with self._silence:
                    await channel.stirred()
                is_claimed = self._silence.cancelled_caught
        except (TransportError, PeerError):
            pass  # the slot stays: it is a relay, and dialled afresh when it is used
        finally:
            ended = None if is_claimed else self._channel
            self._channel = self._channel if is_claimed else None
            self._over.set()
            if ended is not None:
                await ended.aclose()

    async def claim(self) -> Channel[Receipt] | None:
        """Return the connection, once it is there if it is being dialled; `None` where none lives.

        The caller closes it.
        """
        self._life.deadline = math.inf
        self._silence.cancel()
        await self._over.wait()
        channel, self._channel = self._channel, None
        return channel


class ReadyConnections:
    """The ready connections for one stream of messages of one daemon."""

    def __init__(self, rule: ReadyRule, connector: Connector, shards: Shards, context: Context) -> None:
        self._rule = rule
        self._connector = connector
        self._shards = shards
        self._env = context.env
        self._counters = context.counters
        self._slots: ReadySlots[ReadyConnection] = ReadySlots()

    def take(self, origins: Collection[RelayId]) -> ReadyConnection | None:
        """Draw a slot at one of these relays, for one message alone; `None` where there is none."""
        taken = self._slots.take(origins, trio.current_time(), self._env.below)
        self._counters.add("slots_taken" if taken is not None else "slots_lacking", int(self._rule.slots > 0))
        return taken

    async def run(self) -> None:
        """Open slots at moments that depend on nothing, until cancelled; at once if there are to be none."""
        if not self._rule.slots:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._rest_and_work)
            while True:
                # By a clock that stands while the machine sleeps: nothing opens in a burst after it.
                await trio.sleep(self._rule.pause(self._env.uniform(0.0, 1.0)))
                if (relay := self._drawn()) is not None:
                    ends = trio.current_time() + self._rule.stay(self._env.uniform(0.0, 1.0))
                    slot = ReadyConnection(relay.id, ends)
                    self._slots.lapse(trio.current_time())
                    self._slots.open(slot)
                    self._counters.add("slots_opened")
                    nursery.start_soon(slot.hold, relay, self._connector)

    async def _rest_and_work(self) -> None:
        while True:
            self._slots.rests = True
            await trio.sleep(self._rule.rest(self._env.uniform(0.0, 1.0)))
            self._slots.rests = False
            await trio.sleep(self._rule.work(self._env.uniform(0.0, 1.0)))

    def _drawn(self) -> Relay | None:
        """Draw a relay as for a message.

        `None` where nobody keeps what is published: probes are so many there that they would find no slot,
        and publications would. On a day that is cut it depends on the topic which relays take a message.
        """
        if not self._shards.keeping.keepers or self._shards.is_cut(self._shards.today):
            return None
        near = self._shards.of(self._shards.today, b"")
        try:
            return None if near is None else self._env.sample(near.origins(), 1)[0]
        except Refusal:
            return None
