"""Incoming links: both ends compare their trees, and whoever opened the link is served as who it is."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
import trio

from hushcast_brokers.children import Children
from hushcast_brokers.clients import Clients
from hushcast_brokers.strangers import Strangers
from hushcast_brokers.tables import Tables
from hushcast_brokers.tree_keeper import TreeKeeper
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.roster import View
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.brokers.frames import MAX_BROKER_FRAME, FromBelow, NewTree, decode_from_below
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.channel import Channel, accept_channel
from hushcast_runtime.context import Context

TREE_WITHIN = 30.0  # seconds for the tree of somebody who said that it has a newer one


log = structlog.get_logger("incoming")


@dataclass(frozen=True)
class Doors:
    """Who serves whom."""

    tables: Tables
    clients: Clients
    strangers: Strangers


class Incoming:
    """The links that others open to one broker."""

    def __init__(
        self,
        network: BrokersNetwork,
        seed: Seed,
        keeper: TreeKeeper,
        children: Children,
        doors: Doors,
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
        try:
            if established.view is not None:
                await self._compare(channel, established.view)
        except BaseException:
            await channel.aclose()
            raise
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

    async def _compare(self, channel: Channel[FromBelow], theirs: View) -> None:
        if channel.peer is not None and theirs.epoch > self._tree.view.epoch:
            frame = await channel.one(TREE_WITHIN)
            if not isinstance(frame, NewTree):
                raise DecodeError("somebody does not say the newer tree that it spoke of")
            if await self._tree.take(frame.tree):
                self._counters.add("trees_taken")
        ours = self._tree.view
        is_broker = channel.peer is not None and self._keeper.is_listed(channel.peer)
        if self._keeper.is_root and is_broker and theirs.epoch == ours.epoch and theirs.digest != ours.digest:
            log.warning("a broker holds another tree of this version: a newer one is signed")
            await self._keeper.outdo()
        told = theirs.epoch
        while (tree := self._tree.newest) is not None and tree.version > told:
            told = tree.version
            await channel.send(NewTree(tree.signed))
