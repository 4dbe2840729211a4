"""Streams between machines, as through Tor: opened by the work of two tors, sent over a line up and one down.

A stream is opened by the tor of whoever connects and the one of whoever is connected to; each cell is work
for both, too. Between them lie delays as they were measured (`tor_work`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import trio

from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.memory import (
    CallAt,
    MemoryListener,
    MemoryNetwork,
    MemoryStream,
    MemoryTransport,
    Pipe,
)
from hushcast_runtime.transports.streams import say_ahead
from hushcast_testnet.compare.machines import Machine
from hushcast_testnet.compare.tor_work import CELL, CELL_HOLDS, TorWork


class MachineNetwork(MemoryNetwork):
    """All listeners of one network, and the machines that they are on."""

    def __init__(self, work: TorWork, bits_a_second: float, env: Environment, call_at: CallAt) -> None:
        super().__init__(call_at=call_at)
        self.at = call_at
        self.work = work
        self.bytes_a_second = bits_a_second / 8
        self._env = env
        self.said: Counter[str] = Counter()
        """What was opened and sent so far: `connections`, `writes`, and their `bytes`."""
        self.machines: dict[Address, Machine] = {}

    def on(self, machine: Machine) -> MachineTransport:
        """Return the transport of the daemon on a machine."""
        return MachineTransport(self, machine)

    def draw(self, seconds: Sequence[float]) -> float:
        """Draw one of the times that were measured."""
        return seconds[self._env.below(len(seconds))]

    async def wait_until(self, moment: float) -> None:
        """Wait for a moment of trio's clock."""
        await self.pause(moment - trio.current_time())


class MachineTransport(MemoryTransport):
    """One daemon's way to the others."""

    def __init__(self, wires: MachineNetwork, machine: Machine) -> None:
        super().__init__(wires)
        self._wires = wires
        self._machine = machine

    async def listen(self, seed: Seed, previous: Address | None = None) -> MemoryListener:
        """Open a listener; its address is found once its descriptor would be there."""
        await trio.lowlevel.checkpoint()
        work = self._wires.work
        sent = self._machine.tor.work(work.publish_cpu, self._machine.done())
        there = sent + max(0.0, self._wires.draw(work.publish_seconds) - work.publish_cpu)
        listener = _Listener(self._wires, memory_address(seed.public()), there)
        self._wires.machines[listener.address] = self._machine
        return self.open(listener)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect: our tor works, the circuits meet, their tor works, and says so."""
        wires, work = self._wires, self._wires.work
        delay = wires.draw(work.one_way_seconds)
        opened = self._machine.tor.work(work.open_cpu(self._machine.circuits), self._machine.done())
        bare = wires.draw(work.connect_seconds) - work.alone_cpu
        await wires.wait_until(opened + max(0.0, bare - delay))
        there = wires.machines.get(address)
        if there is None or address not in wires.listeners:
            raise TransportError("no daemon answers at this address")
        await wires.wait_until(there.tor.work(work.accept_cpu, trio.current_time()))
        listener = wires.listeners.get(address)
        if listener is None:
            raise TransportError("no daemon answers at this address")
        wires.said["connections"] += 1
        circuit = Circuit(self._machine)
        forth = _Way(wires, delay, self._machine, there, circuit)
        back = _Way(wires, delay, there, self._machine, circuit)
        listener.accept(MemoryStream(forth, back))
        await wires.pause(delay)
        return await say_ahead(MemoryStream(back, forth), ahead)


class _Listener(MemoryListener):
    """An address that others find from a moment on."""

    def __init__(self, network: MemoryNetwork, address: Address, there: float) -> None:
        super().__init__(network, address)
        self._there = there

    async def published(self) -> None:
        """Return when the address can be found."""
        await trio.sleep_until(self._there)


class Circuit:
    """What the tor that opened a stream holds while it is open; those that it accepts cost it nothing."""

    __slots__ = ("_opener",)

    def __init__(self, opener: Machine) -> None:
        self._opener: Machine | None = opener
        opener.circuits += 1

    def close(self) -> None:
        """Give it up, once."""
        if self._opener is not None:
            self._opener.circuits -= 1
            self._opener = None


class _Way(Pipe):
    """One direction of a stream: over one machine's tor and line, a delay, and the other's."""

    __slots__ = ("_circuit", "_ends", "_sender", "_taker", "_under_way", "_wires")

    def __init__(
        self, wires: MachineNetwork, delay: float, sender: Machine, taker: Machine, circuit: Circuit
    ) -> None:
        super().__init__(delay, wires.at)
        self._wires = wires
        self._circuit = circuit
        self._sender = sender
        self._taker = taker
        self._under_way = 0
        self._ends = False

    def send(self, data: bytes) -> None:
        """Send bytes when the processor has come so far."""
        wires, sender = self._wires, self._sender
        cells = -(-len(data) // CELL_HOLDS)
        wires.said.update(writes=1, bytes=len(data))
        packed = sender.tor.work(wires.work.send_cpu(cells), sender.done())
        sent = sender.up.work(cells * CELL / wires.bytes_a_second, packed)
        self._under_way += 1
        wires.at(sent + self._delay, partial(self._arrive, data, cells))

    def _arrive(self, data: bytes, cells: int) -> None:
        """Take in what came; it is read when the processor there has time, with what comes meanwhile."""
        wires, taker = self._wires, self._taker
        came = taker.down.work(cells * CELL / wires.bytes_a_second, trio.current_time())
        unpacked = taker.tor.work(wires.work.receive_cpu(cells), came)
        self.put(max(unpacked, taker.processor.busy_until), data)
        self._under_way -= 1
        if self._ends and not self._under_way:
            super().close()

    def call_when_readable(self, call: Callable[[], None]) -> bool:
        """Have it read by a task, whose steps are laid upon its machine."""
        return False

    def close(self) -> None:
        """Let the end come behind what is under way."""
        self._ends = True
        self._circuit.close()
        if not self._under_way:
            super().close()
