"""Wires on which an address is found some seconds after it was opened, as onion services are."""

from __future__ import annotations

import trio

from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.memory import MemoryListener, MemoryNetwork, MemoryTransport


class SlowListener(MemoryListener):
    """An address that is found after a while, or never, and that its tor may lose."""

    def __init__(self, network: SlowWires, address: Address) -> None:
        super().__init__(network, address)
        self._wires = network
        self._fails = network.fails
        self._published_after = network.published_after
        self.is_found = trio.Event()
        self.tor_is_gone = trio.Event()

    async def published(self) -> None:
        with trio.move_on_after(self._published_after):
            await self.is_found.wait()
        if self._fails:
            raise TransportError("tor has not published the onion service in time")

    async def lost(self) -> None:
        await self.tor_is_gone.wait()

    async def aclose(self) -> None:
        self._wires.closed.append(self.address)
        await super().aclose()


class SlowTransport(MemoryTransport):
    def __init__(self, network: SlowWires) -> None:
        super().__init__(network)
        self._wires = network

    async def listen(self, seed: Seed, previous: Address | None = None) -> MemoryListener:
        await trio.lowlevel.checkpoint()
        if self._wires.refuses:
            raise TransportError("tor refused the onion service")
        address = memory_address(seed.public())
        self._wires.keys[address] = seed.public()
        self._wires.opened[address] = trio.current_time()
        return self.open(SlowListener(self._wires, address))


class SlowWires(MemoryNetwork):
    """Onion services take long here; notes when each was opened, and which are closed."""

    def __init__(self, before: MemoryNetwork, published_after: float) -> None:
        super().__init__(before.delay, before.call_at)
        self.published_after = published_after
        self.opened: dict[Address, float] = {}
        self.keys: dict[Address, PublicKey] = {}
        self.closed: list[Address] = []
        self.fails = self.refuses = False

    def transport(self) -> MemoryTransport:
        return SlowTransport(self)
