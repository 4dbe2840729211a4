"""Members of the in-process network: real daemons over `memory` that die and come back with their disk."""

from __future__ import annotations

import functools
from pathlib import Path

import trio

from hushcast_directory.registry import Registry
from hushcast_directory.server import DirectoryServer
from hushcast_node.counted import COUNTERS
from hushcast_node.daemon import Daemon, Parts
from hushcast_node.overlay_side import OverlayParts
from hushcast_overlay.identity import draw_identity
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.overlay.forwarding import Decision, Outcome, Router
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.store import MemoryStore
from hushcast_runtime.tracing import FileTracer, NoTracer, Tracer
from hushcast_runtime.transports.memory import CallAt, MemoryNetwork
from hushcast_testnet.colluders import Colluders, Selecting

SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # virtual seconds that a stream takes one way; Tor's are of this order


class _Loss(Router):
    """A hostile relay's decision: it takes every message, confirms it and sends it nowhere."""

    def __init__(self) -> None:
        pass

    def route(self, message: Message, previous: bytes, now: float) -> Decision:
        return Decision(Outcome.DUPLICATE)

    def use_label(self, label: bytes) -> None:
        pass


class Member:
    """One daemon; its identity, store and counters outlive its lives."""

    def __init__(self, simulated: SimulatedNetwork, name: str, is_relay: bool) -> None:
        self.name = name
        self.drops = False
        """Whether it silently loses what it should forward."""
        self._together: Colluders | None = None
        self.counters = Counters(COUNTERS)
        self._simulated = simulated
        self._env = simulated.environment(name)
        self._identity = draw_identity(self._env.randomness) if is_relay else None
        self._store = MemoryStore()
        node = self._identity.seed.public().hex() if self._identity else name
        self._tracer = simulated.tracer(name, node, self._env)
        self._scope: trio.CancelScope | None = None
        self._daemon: Daemon | None = None

    @property
    def daemon(self) -> Daemon:
        """The running daemon, or the last one that ran."""
        assert self._daemon is not None
        return self._daemon

    @property
    def key(self) -> bytes | None:
        """A relay's identity key."""
        return self._identity.seed.public() if self._identity else None

    @property
    def is_up(self) -> bool:
        """Tell whether it runs."""
        return self._scope is not None

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the daemon on what is on its disk."""
        await nursery.start(self._live)
        if self.drops:
            self.lose_messages(self._together)

    def kill(self) -> None:
        """End the daemon without a word to anybody."""
        assert self._scope is not None
        self._scope.cancel()
        self._scope = None

    def lose_messages(self, together: Colluders | None = None) -> None:
        """Confirm and lose all messages from now on, or those that it chooses `together` with others."""
        self.drops, self._together = True, together
        relay = self.daemon.overlay.relay
        assert relay is not None
        relay.forwarding._router = Selecting(relay, together) if together is not None else _Loss()

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        simulated = self._simulated
        transport = simulated.wires.transport()
        parts = Parts(
            OverlayParts(
                simulated.network,
                simulated.profile,
                simulated.directory_address,
                simulated.directory_seed.public(),
                self._identity,
                simulated.check_roster,
            ),
            self._env,
            transport,
            self._store,
            self._tracer,
            simulated.derive,
            probes_an_epoch=simulated.probes_an_epoch,
        )
        self._daemon = Daemon(parts, self.counters)
        with trio.CancelScope() as self._scope:
            try:
                await self._daemon.run(task_status=task_status)
            finally:
                transport.vanish()


class SimulatedNetwork:
    """The shared state of the members of one network, including the directory."""

    def __init__(
        self,
        network: Network,
        profile: Profile,
        seed: int,
        begin: float,
        traces: Path | None,
        probes_an_epoch: float,
        call_at: CallAt,
    ) -> None:
        """`begin` is the Unix time at which trio's clock shows 0."""
        self.network = network
        self.probes_an_epoch = probes_an_epoch
        self.profile = profile
        self._seed = seed
        self._begin = begin
        self._traces = traces
        self.env = self.environment("all")
        self.wires = MemoryNetwork(lambda: self.env.uniform(SHORTEST_WAY, LONGEST_WAY), call_at)
        self.directory_seed = Seed.draw(self.env.randomness)
        # Work that is the same for all members is done once: deriving a topic's key, checking a roster's
        # signatures.
        self.derive = functools.cache(topic_key)
        self.check_roster = functools.cache(check_roster)
        self._tracers: list[FileTracer] = []

    def environment(self, name: str) -> Environment:
        """Return the world as one member sees it."""
        return simulated_environment(f"{self._seed} {name}", self._begin)

    def tracer(self, name: str, node: str, env: Environment) -> Tracer:
        """Return a member's tracer."""
        if self._traces is None:
            return NoTracer()
        tracer = FileTracer(self._traces, name, node, self._begin, self.network.epoch_seconds, env)
        self._tracers.append(tracer)
        return tracer

    async def open_directory(self, relays: int, nursery: trio.Nursery) -> None:
        """Start the directory; it waits for so many relays."""
        self.registry = Registry(self.network, self.directory_seed, MemoryStore(), relays)
        transport = self.wires.transport()
        server = DirectoryServer(self.env, transport, self.network.id, self.directory_seed, self.registry)
        listener = await transport.listen(self.directory_seed)
        self.directory_address = listener.address
        nursery.start_soon(server.run, listener)

    def close(self) -> None:
        """Close the traces."""
        for tracer in self._tracers:
            tracer.close()
