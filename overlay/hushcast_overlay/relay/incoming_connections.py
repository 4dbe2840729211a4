"""Takes connections at a relay's address through the handshake, to the peers or the strangers."""

from __future__ import annotations

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.relay.peers import Peers
from hushcast_overlay.relay.strangers import Strangers
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.overlay.frame_directions import FromRelay, decode_from_relay, decode_from_stranger
from hushcast_runtime.transports.channel import Channel

MAX_CONNECTIONS = 4096  # links of other relays to us at once: each of a full roster may have two


class IncomingConnections:
    """The connections that others open to one relay."""

    def __init__(
        self, seed: Seed, connector: Connector, shards: Shards, peers: Peers, strangers: Strangers
    ) -> None:
        self._seed = seed
        self._connector = connector
        self._shards = shards
        self._peers = peers
        self._strangers = strangers

    async def accept(self, stream: trio.abc.Stream) -> Channel[FromRelay]:
        """Take a stream through the handshake; raises a `PeerError` or `TransportError`."""
        return await self._connector.accept(stream, self._seed, decode_from_relay, as_relay=True)

    async def serve(self, channel: Channel[FromRelay]) -> None:
        """Answer one connection; raises a `PeerError` or `TransportError`."""
        if channel.peer is None:
            await self._strangers.serve(channel.speaking(decode_from_stranger))
        elif self._shards.relay(channel.peer) is not None:
            await self._peers.serve(channel)
        else:
            raise DecodeError("a relay that no roster lists")
