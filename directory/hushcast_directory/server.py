"""The directory's server: answers daemons, reaches relays before it lists them, publishes in time."""

from __future__ import annotations

import structlog
import trio

from hushcast_directory.publishing import Publishing
from hushcast_directory.registry import Registry
from hushcast_protocol.addresses import parse_address
from hushcast_protocol.errors import PeerError, Refusal
from hushcast_protocol.frames import (
    MAX_DIRECTORY_REQUEST,
    MAX_OVERLAY_FRAME,
    DirectoryAnswer,
    DirectoryRequest,
    Fetch,
    Refused,
    Registered,
    Rosters,
    decode_directory_request,
    decode_overlay,
)
from hushcast_protocol.links import Link
from hushcast_protocol.roster import Descriptor
from hushcast_protocol.secrets import Seed
from hushcast_protocol.signatures import Signed
from hushcast_runtime.channel import accept_channel, open_channel
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import Listener, Transport, TransportError

MAX_CONNECTIONS = 256  # answered at once; more wait, so that a flood costs memory for these only
MAX_CHECKS = 8  # relays reached at once: each takes a Tor circuit
REQUEST_TIMEOUT = 60.0  # seconds in which a connection must ask

log = structlog.get_logger("directory")


class DirectoryServer:
    """Serves one `Registry` on one listener."""

    def __init__(
        self, env: Environment, transport: Transport, network: bytes, seed: Seed, registry: Registry
    ) -> None:
        self.clock = DaemonClock(env, registry.calendar)
        self.publishing = Publishing(self.clock, registry)
        self._env = self.clock.environment()
        self._transport = transport
        self._network = network
        self._seed = seed
        self._registry = registry
        self._connections = trio.CapacityLimiter(MAX_CONNECTIONS)
        self._checks = trio.CapacityLimiter(MAX_CHECKS)

    async def run(self, listener: Listener) -> None:
        """Serve and publish until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.publishing.run)
            await listener.serve(self._answer)

    async def _answer(self, stream: trio.abc.Stream) -> None:
        async with self._connections:
            link = Link.respond(self._network, self._seed, self._env.randomness, MAX_DIRECTORY_REQUEST)
            try:
                channel, _ = await accept_channel(stream, link, decode_directory_request)
                try:
                    answer = await self._consider(await channel.one(REQUEST_TIMEOUT))
                    await channel.send(answer)
                    await channel.finish()
                finally:
                    await channel.aclose()
            except (PeerError, TransportError) as error:
                log.debug("connection ended", reason=str(error))

    async def _consider(self, request: DirectoryRequest) -> DirectoryAnswer:
        if isinstance(request, Fetch):
            roster, more = self._registry.after(request.after)
            return Rosters(roster.signed if roster else None, more)
        try:
            return await self._register(request.descriptor)
        except Refusal as refusal:
            return Refused(refusal.reason)
        except PeerError as error:
            return Refused(str(error))

    async def _register(self, signed: Signed) -> Registered:
        descriptor = self._registry.examine(signed, self._env.now())
        async with self._checks:
            await self._reach(descriptor)
        await self._registry.admit(descriptor, signed)
        log.info("relay registered")
        self.publishing.note_registered()
        return Registered()

    async def _reach(self, descriptor: Descriptor) -> None:
        link = Link.initiate(self._network, descriptor.relay, self._env.randomness, MAX_OVERLAY_FRAME)
        address = parse_address(descriptor.address)
        try:
            channel, _ = await open_channel(
                self._transport, address, self._env.isolation(), link, decode_overlay
            )
        except (PeerError, TransportError) as error:
            raise Refusal(f"the relay was not reached at its address: {error}") from None
        await channel.aclose()
