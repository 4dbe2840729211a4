"""A host of the attacker's own: where it listens, and the links by which relays dial it."""

from __future__ import annotations

import os

import trio
from small_network import SmallNetwork

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, OverlayFrame, decode_overlay
from hushcast_runtime.transports.channel import Channel, accept_channel

Links = trio.MemoryReceiveChannel[Channel[OverlayFrame]]


async def open_host(net: SmallNetwork, box: Seed) -> tuple[Address, Links]:
    """Listen as a host; each link stays open until the network ends."""
    listener = await net.wires.transport().listen(box)
    coming, links = trio.open_memory_channel[Channel[OverlayFrame]](9)

    async def take(stream: trio.abc.Stream) -> None:
        link = Link.respond(net.net.id, box, os.urandom, MAX_OVERLAY_FRAME)
        channel, _ = await accept_channel(stream, link, decode_overlay)
        await coming.send(channel)
        await trio.sleep_forever()

    net.nursery.start_soon(listener.serve, take)
    return listener.address, links
