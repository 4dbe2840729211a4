"""The request for a tree: over an unnamed link, to a broker that may hold a newer one, until that ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.network_wire import NetworkWire
from hushcast_protocol.base.wire import PublicKey, Wire
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    FromAbove,
    NewTree,
    Ping,
    Pong,
    decode_from_above,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import open_channel

ANSWER_WITHIN = 30.0  # seconds; a tree of a thousand brokers has 200 kB


class BrokerContact(NamedTuple):
    """A broker, as whoever opens a link to it knows it."""

    key: PublicKey
    address: Address
    wire: int | None = None
    """In which links to it are opened, where its tree is known."""

    @property
    def manner(self) -> Manner:
        """How daemons show themselves in that."""
        return NetworkWire(self.wire or wires.spoken().highest).manner

    def spoken(self) -> int | None:
        """Return that; raise `OtherWire` where it is not spoken here: it would be in vain."""
        if self.wire is not None:
            NetworkWire(self.wire).check()
        return self.wire


async def ask_for_tree(
    network: BrokersNetwork, tree: HeldTree, broker: BrokerContact, transport: Transport, env: Environment
) -> None:
    """Take the tree that a broker holds if it is newer. Raises `TransportError` or `PeerError`."""
    # One that is not spoken here may have been given up since: who asks learns it, if anybody understands.
    wire = tree.wire(env.now()).nearest
    link = Link.initiate(network.id, broker.key, env.randomness, MAX_BROKER_FRAME, view=tree.view, wire=wire)

    async def hear(frame: FromAbove) -> None:
        if isinstance(frame, NewTree):
            await tree.take(frame.tree)

    await ask(broker, link, (), hear, transport, env)


async def ask(
    broker: BrokerContact,
    link: Link,
    frames: Sequence[Wire],
    hear: Callable[[FromAbove], Awaitable[None]],
    transport: Transport,
    env: Environment,
) -> None:
    """Say something over a link of its own, and hear all that the broker says to it.

    Raises `TransportError` where that has no end in time, or `PeerError`.
    """
    channel, _ = await open_channel(transport, broker.address, env.isolation(), link, decode_from_above)
    try:
        with trio.move_on_after(ANSWER_WITHIN):
            await channel.send(*frames, Ping())
            while batch := await channel.receive():
                for frame in batch:
                    await hear(frame)
                if any(isinstance(frame, Pong) for frame in batch):
                    return
    finally:
        await channel.aclose()
    raise TransportError("a broker did not answer in time")
