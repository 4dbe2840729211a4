"""Daemons of an in-process network that die and come back with their disk, over `memory`; and their world."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from hushcast_node.carrier_parts import BrokersParts, CarrierParts, CentralParts
from hushcast_node.counters import COUNTED
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.content.tokens import topic_key
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.file_tracer import FileTracer
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.memory import CallAt, MemoryNetwork, MemoryTransport
from hushcast_testnet.simulations.record_pool import Pool, PooledStore

SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # virtual seconds that a stream takes one way; Tor's are of this order


class SimulatedWorld:
    """What the daemons of one simulated network have in common, whatever the carrier."""

    probes_an_epoch = 0.0
    """Probes that each daemon sends on each subscription."""

    def __init__(
        self, seed: int, begin: float, epoch_seconds: int, traces: Path | None, call_at: CallAt
    ) -> None:
        """`begin` is the Unix time at which trio's clock shows 0."""
        self._seed = seed
        self._begin = begin
        self._epoch_seconds = epoch_seconds
        self._traces = traces
        self.env = self.environment("all")
        self.wires = MemoryNetwork(lambda: self.env.uniform(SHORTEST_WAY, LONGEST_WAY), call_at)
        self.pool = Pool()
        """The large records of all."""
        self.derive = functools.cache(topic_key)  # the same for all: done once
        self._tracers: list[FileTracer] = []

    def environment(self, name: str) -> Environment:
        """Return the world as one daemon sees it."""
        return simulated_environment(f"{self._seed} {name}", self._begin)

    def tracer(self, name: str, node: str, env: Environment) -> Tracer:
        """Return a daemon's tracer."""
        if self._traces is None:
            return NoTracer()
        tracer = FileTracer(self._traces, name, node, self._begin, self._epoch_seconds, env)
        self._tracers.append(tracer)
        return tracer

    def close(self) -> None:
        """Close the traces."""
        for tracer in self._tracers:
            tracer.close()


class Life(ABC):
    """One daemon; its keys, store and counters outlive its lives."""

    def __init__(self, name: str, counters: Counters, store: MemoryStore | None = None) -> None:
        self.name = name
        self.counters = counters
        self._store = store or MemoryStore()
        self._scope: trio.CancelScope | None = None

    @property
    def is_up(self) -> bool:
        """Tell whether it runs."""
        return self._scope is not None

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the daemon on what is on its disk."""
        await nursery.start(self._live)

    def kill(self) -> None:
        """End the daemon without a word to anybody."""
        assert self._scope is not None
        self._scope.cancel()
        self._scope = None

    @abstractmethod
    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Make the daemon and `_run` it."""

    async def _run(
        self,
        live: Callable[..., Awaitable[None]],
        transport: MemoryTransport,
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Let it live until it is killed; then it vanishes from the network."""
        with trio.CancelScope() as self._scope:
            try:
                await live(task_status=task_status)
            finally:
                transport.vanish()


class NodeLife(Life):
    """A daemon that applications use."""

    def __init__(self, world: SimulatedWorld, name: str, carrier: str) -> None:
        super().__init__(name, Counters(COUNTED[carrier]), PooledStore(world.pool))
        self._world = world
        self._env = world.environment(name)
        self._tracer: Tracer
        self._daemon: NodeDaemon | None = None

    @property
    def daemon(self) -> NodeDaemon:
        """The running daemon, or the last one that ran."""
        assert self._daemon is not None
        return self._daemon

    @abstractmethod
    def _carrier(self) -> CarrierParts:
        """Return its part in the network, for one life."""

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        world = self._world
        transport = world.wires.transport()
        parts = NodeParts(
            self._carrier(),
            self._env,
            transport,
            self._store,
            self._tracer,
            world.derive,
            probes_an_epoch=world.probes_an_epoch,
        )
        self._daemon = NodeDaemon(parts, self.counters)
        await self._run(self._daemon.run, transport, task_status)


class UserLife(NodeLife):
    """A node that carries nothing for others; who listens there hears of each new life of it."""

    def __init__(self, world: SimulatedWorld, name: str, parts: CentralParts | BrokersParts) -> None:
        super().__init__(world, name, parts.NAME)
        self._parts = parts
        self._tracer = world.tracer(name, name, self._env)
        self.listeners: list[Callable[[], None]] = []
        """Called when it has started again."""

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the daemon on what is on its disk, and tell who listens there."""
        await super().start(nursery)
        for again in self.listeners:
            again()

    def _carrier(self) -> CarrierParts:
        return self._parts
