"""Takes connections at a relay's address through the handshake, to peers, children, owners or strangers."""

from __future__ import annotations

from collections.abc import Awaitable

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.relay.boxes.box_children import MAX_CHILDREN, BoxChildren
from hushcast_overlay.relay.boxes.owners import Owners
from hushcast_overlay.relay.peers import Peers
from hushcast_overlay.relay.strangers import Strangers
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.overlay.box_shares import MAX_BOXES
from hushcast_protocol.overlay.frame_directions import (
    FromRelay,
    decode_from_child,
    decode_from_owner,
    decode_from_relay,
    decode_from_stranger,
)
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.connection_guard import MAX_STRANGERS

# Links under a name to us at once: each relay of a full roster may have two, each box has one, and so have
# children that no roster lists and, in a stranger's place, who has no box yet: these twice, while those that
# gave way end.
MAX_CONNECTIONS = 4096 + MAX_BOXES + 2 * (MAX_CHILDREN + MAX_STRANGERS)


class IncomingConnections:
    """The connections that others open to one relay."""

    def __init__(
        self,
        seed: Seed,
        connector: Connector,
        shards: Shards,
        peers: Peers,
        strangers: Strangers,
        owners: Owners,
        children: BoxChildren,
    ) -> None:
        self._seed = seed
        self._connector = connector
        self._shards = shards
        self._peers = peers
        self._strangers = strangers
        self._owners = owners
        self._children = children

    async def accept(self, stream: trio.abc.Stream) -> Channel[FromRelay]:
        """Take a stream through the handshake; raises a `PeerError` or `TransportError`."""
        return await self._connector.accept(stream, self._seed, decode_from_relay)

    def serve(self, channel: Channel[FromRelay]) -> Awaitable[bool | None]:
        """Answer one connection; raises a `PeerError` or `TransportError`. A peer's is kept."""
        # No coroutine: there would be its frame for as long as there is the link.
        if channel.peer is None:
            return self._strangers.serve(channel.speaking(decode_from_stranger, self._connector.turns.take))
        if self._shards.relay(channel.peer) is not None:
            return self._peers.serve(channel)
        if channel.peer in self._children:
            return self._children.serve(channel.speaking(decode_from_child))
        return self._owners.serve(channel.speaking(decode_from_owner))
