"""Children of a broker that do not keep to the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from small_tree import (
    Member,
    SmallTree,
)
from talk import Talk

from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    ParentHello,
    decode_from_below,
)
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel


async def as_child(network: SmallTree, member: Member) -> Talk:
    """Stop a broker, and connect to its parent in its place."""
    await member.stop()
    assert member.parent is not None
    talk = await network.connect(member.parent, member.seed, network.view)
    assert isinstance(await talk.hear(), ParentHello)
    return talk


@asynccontextmanager
async def posing(network: SmallTree, member: Member, script: Callable[[Talk], Awaitable[None]]) -> Any:
    """Stop a broker, and serve those who connect to it by a script."""
    await member.stop()
    transport = network.wires.transport()
    listener = await transport.listen(member.service, member.address)

    async def serve(stream: trio.abc.Stream) -> None:
        link = Link.respond(
            network.net.id, member.seed, network.env.randomness, MAX_BROKER_FRAME, network.view
        )
        try:
            channel, _ = await accept_channel(stream, link, decode_from_below)
            await script(Talk(channel))
            await channel.aclose()
        except TransportError:
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, serve)
        yield
        nursery.cancel_scope.cancel()
    await listener.aclose()
