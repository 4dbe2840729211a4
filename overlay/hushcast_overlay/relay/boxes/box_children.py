"""The children of boxes: relays that bring messages for boxes, as the owners of these have named them.

On a day that is cut a box's host may be of another shard than its tree, and hold no roster that lists its
children. Whoever an owner names may be anybody: it brings messages for boxes, and may nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_overlay.relay.acknowledgements import ACKNOWLEDGE_AFTER
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frame_directions import FromChild
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_runtime.context import Context
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_CHILDREN = MAX_RELAYS  # links of them at once; a message for one that gave way waits until it is back

TakeForBoxes = Callable[[list[Message], bytes], Awaitable[list[int]]]
"""Takes over messages from a child, for boxes alone; returns as `TakeForwards` does."""


class BoxChildren:
    """The links of such relays to one host."""

    def __init__(self, leases: LeaseStore, take: TakeForBoxes, context: Context) -> None:
        self._leases = leases
        self._take = take
        self._store = context.store
        self._slots = ConnectionSlots(
            MAX_CHILDREN, context.env.below, context.counters.add, "box_children_dropped"
        )
        self._links: dict[RelayId, trio.CancelScope] = {}

    def __contains__(self, relay: RelayId) -> bool:
        """Tell whether an owner named a relay."""
        return self._leases.book.is_child(relay)

    async def serve(self, channel: Channel[FromChild]) -> None:
        """Take what a child brings until its link ends; raises a `PeerError` or `TransportError`."""
        assert channel.peer is not None
        child = channel.peer
        with self._slots.place(), trio.move_on_after(IDLE) as scope:
            if (older := self._links.get(child)) is not None:
                older.cancel()
            self._links[child] = scope
            try:
                await self._take_all(channel, child, scope)
            finally:
                if self._links.get(child) is scope:
                    del self._links[child]

    async def _take_all(self, channel: Channel[FromChild], child: RelayId, scope: trio.CancelScope) -> None:
        taken = 0
        while batch := await channel.receive():
            came = trio.current_time()
            scope.deadline = came + IDLE
            messages = [frame.message for frame in batch if isinstance(frame, Forward)]
            if any(len(message.tokens) > 1 for message in messages):
                raise DecodeError("the child of a box brings what enters a tree, and belongs in none here")
            unrouted = await self._take(messages, child) if messages else []
            if messages:  # the commit holds what others bring, too, and is over by that moment
                await self._store.write()
                await trio.sleep_until(came + ACKNOWLEDGE_AFTER)
            await channel.send(Ack(taken + len(messages), tuple([taken + place + 1 for place in unrouted])))
            taken += len(messages)
