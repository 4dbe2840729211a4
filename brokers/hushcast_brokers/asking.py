"""Asking for the tree: an unnamed link to a broker that may hold a newer one, for as long as that takes."""

from __future__ import annotations

from typing import NamedTuple

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, NewTree, Ping, Pong, decode_from_above
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.channel import open_channel
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Transport, TransportError

ANSWER_WITHIN = 30.0  # seconds; a tree of a thousand brokers has 200 kB


class Peer(NamedTuple):
    """A broker, as whoever opens a link to it knows it."""

    key: PublicKey
    address: Address


async def ask_for_tree(
    network: BrokersNetwork, tree: HeldTree, broker: Peer, transport: Transport, env: Environment
) -> None:
    """Take the tree that a broker holds if it is newer. Raises `TransportError` or `PeerError`."""
    link = Link.initiate(network.id, broker.key, env.randomness, MAX_BROKER_FRAME, view=tree.view)
    channel, _ = await open_channel(transport, broker.address, env.isolation(), link, decode_from_above)
    try:
        with trio.move_on_after(ANSWER_WITHIN):
            await channel.send(Ping())
            while batch := await channel.receive():
                for frame in batch:
                    if isinstance(frame, NewTree):
                        await tree.take(frame.tree)
                if any(isinstance(frame, Pong) for frame in batch):
                    return
    finally:
        await channel.aclose()
    raise TransportError("a broker did not say which tree it holds")
