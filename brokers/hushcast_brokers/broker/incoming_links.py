"""Incoming links: both ends compare their trees, and whoever opened the link is served as who it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import trio

from hushcast_brokers.broker.children import Children
from hushcast_brokers.broker.clients import Clients
from hushcast_brokers.broker.strangers import BrokerStrangers
from hushcast_brokers.broker.tables import Tables
from hushcast_brokers.broker.tree_keeper import TreeKeeper
from hushcast_brokers.tree_comparison import compare_trees
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, FromBelow, decode_from_below
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.channel import Channel, accept_channel


@dataclass(frozen=True)
class LinkServices:
    """Who serves whom."""

    tables: Tables
    clients: Clients
    strangers: BrokerStrangers


class IncomingLinks:
    """The links that others open to one broker."""

    def __init__(
        self,
        network: BrokersNetwork,
        seed: Seed,
        keeper: TreeKeeper,
        children: Children,
        doors: LinkServices,
        context: Context,
    ) -> None:
        self._network = network
        self._seed = seed
        self._keeper = keeper
        self._tree = keeper.held
        self._children = children
        self._doors = doors
        self._env = context.env
        self._counters = context.counters

    async def accept(self, stream: trio.abc.Stream) -> Channel[FromBelow]:
        """Run the handshake, and let whoever has the older tree have the newer one."""
        link = Link.respond(
            self._network.id, self._seed, self._env.randomness, MAX_BROKER_FRAME, self._tree.view
        )
        channel, established = await accept_channel(stream, link, decode_from_below)
        self._counters.add("links_opened")
        await compare_trees(channel, established.view, self._tree, partial(self._clashed, channel.peer))
        return channel

    async def serve(self, channel: Channel[FromBelow]) -> None:
        """Serve one connection; raises a `PeerError` or `TransportError`."""
        key = channel.peer
        if key is None:
            await self._doors.strangers.serve(channel)
        elif key in self._keeper.children():
            await self._children.serve(channel, key, False, self._doors.tables)
        elif self._keeper.role == "edge" and not self._keeper.is_listed(key):
            try:
                await self._children.serve(channel, key, True, self._doors.clients)
            finally:
                self._doors.clients.left(key)
        else:
            self._counters.add("refused_unlisted")

    async def _clashed(self, peer: PublicKey | None) -> None:
        if self._keeper.is_root and peer is not None and self._keeper.is_listed(peer):
            log.warning("a broker holds another tree of this version: a newer one is signed")
            await self._keeper.outdo()
