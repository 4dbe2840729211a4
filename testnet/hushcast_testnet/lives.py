"""Daemons of an in-process network that die and come back with their disk, over `memory`; and their world."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from hushcast_node.counted import COUNTED
from hushcast_node.daemon import Daemon
from hushcast_protocol.content.tokens import topic_key
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.store import MemoryStore
from hushcast_runtime.tracing import FileTracer, NoTracer, Tracer
from hushcast_runtime.transports.memory import CallAt, MemoryNetwork, MemoryTransport
from hushcast_testnet.inventory import CarrierName

SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # virtual seconds that a stream takes one way; Tor's are of this order


class World:
    """What the daemons of one simulated network have in common, whatever the carrier."""

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

    def __init__(self, name: str, counters: Counters) -> None:
        self.name = name
        self.counters = counters
        self._store = MemoryStore()
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

    def __init__(self, name: str, carrier: CarrierName) -> None:
        super().__init__(name, Counters(COUNTED[carrier]))
        self._daemon: Daemon | None = None

    @property
    def daemon(self) -> Daemon:
        """The running daemon, or the last one that ran."""
        assert self._daemon is not None
        return self._daemon


class UserLife(NodeLife):
    """A node that carries nothing for others; who listens there hears of each new life of it."""

    def __init__(self, name: str, carrier: CarrierName) -> None:
        super().__init__(name, carrier)
        self.listeners: list[Callable[[], None]] = []
        """Called when it has started again."""

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the daemon on what is on its disk, and tell who listens there."""
        await super().start(nursery)
        for again in self.listeners:
            again()
