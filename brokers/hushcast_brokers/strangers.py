"""Strangers: connections without a name, of whoever publishes, asks for the tree, or sees if we are here."""

from __future__ import annotations

import trio

from hushcast_brokers.publications import Publications
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.brokers.frames import FromBelow, Ping, Pong, Publish, Receipt
from hushcast_runtime.channel import Channel
from hushcast_runtime.connection_guard import strangers_room
from hushcast_runtime.context import Context

ASK_WITHIN = 120.0  # seconds that such a connection may stay; each publication has a circuit of its own


class Strangers:
    """Those who show no name to one broker."""

    def __init__(self, publications: Publications | None, context: Context) -> None:
        """`publications` are the root's; nobody else takes any."""
        self._publications = publications
        self._room = strangers_room(context.env, context.counters)
        self._counters = context.counters

    async def serve(self, channel: Channel[FromBelow]) -> None:
        """Answer one connection's frames in order, for a while; raises a `PeerError` or `TransportError`."""
        with self._room.place(), trio.move_on_after(ASK_WITHIN):
            while batch := await channel.receive():
                for frame in batch:
                    if isinstance(frame, Ping):
                        await channel.send(Pong())
                    elif isinstance(frame, Publish):
                        await channel.send(await self._receipt(frame))
                    else:
                        raise DecodeError("somebody without a name says what children say")

    async def _receipt(self, frame: Publish) -> Receipt:
        if self._publications is None:
            self._counters.add("refused_unknown")
            return Receipt("unknown", 0)
        return await self._publications.take(frame)
