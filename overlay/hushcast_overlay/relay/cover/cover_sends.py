"""Cover sends: what porter, second and third say to each other, over the links of their relays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import trio

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.frame_directions import BetweenCover
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError

# Relays to which something is being said at once: a second has a link to each of some 500 porters to find.
MAX_SENT_AT_ONCE = 32
SENT_WITHIN = 60.0  # seconds for one frame, its link included; what takes longer is lost, and goes anew


class CoverPeers(Protocol):
    """The other relays, as cover needs them."""

    async def say(self, relay: Hop, frame: BetweenCover, patience: float) -> None:
        """Say a frame to a relay under this one's name; raise `TransportError`, or a `PeerError`."""


class CoverSends:
    """What one relay says to others for cover."""

    def __init__(self, peers: CoverPeers, context: Context) -> None:
        self._peers = peers
        self._env = context.env

    async def send(self, frames: Mapping[RelayId, Sequence[BetweenCover]]) -> set[RelayId]:
        """Say frames to relays, to each in their order; return the relays that were told all of them."""
        told: set[RelayId] = set()
        relays = iter(self._env.sample(list(frames), len(frames)))
        async with trio.open_nursery() as nursery:
            for _ in range(min(MAX_SENT_AT_ONCE, len(frames))):
                nursery.start_soon(self._send_next, relays, frames, told)
        return told

    async def _send_next(
        self,
        relays: Iterator[RelayId],
        frames: Mapping[RelayId, Sequence[BetweenCover]],
        told: set[RelayId],
    ) -> None:
        for relay in relays:
            try:
                for frame in frames[relay]:
                    await self._peers.say(relay_hop(relay), frame, SENT_WITHIN)
            except (TransportError, PeerError):
                continue  # the link's own counters tell of it
            told.add(relay)
