"""A central network with real daemons that publish and subscribe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from small_central import Member, SmallCentral
from small_network import BEGIN, EPOCH_SECONDS, ONE, READY_WITHIN, Ear, derive, until

from hushcast_central.user.receiver import CentralRoute
from hushcast_node.carrier_parts import CentralParts
from hushcast_node.counters import CENTRAL_NODE
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.environment import Environment
from hushcast_runtime.file_tracer import FileTracer
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Transport


class Node(Member):
    """A daemon; its store outlives it."""

    network: CentralNetworkOfDaemons
    daemon: NodeDaemon

    def __init__(self, network: CentralNetworkOfDaemons, name: str) -> None:
        super().__init__(network, name, CENTRAL_NODE)

    def made(self, transport: Transport, env: Environment) -> NodeDaemon:
        network = self.network
        carrier = CentralParts(network.net, CENTRAL_PROFILES[network.net.profile], network.proxies)
        return self.wired(
            NodeParts(
                carrier,
                env,
                transport,
                self.store,
                network.tracer_of(self.name, env),
                derive=derive,
                probes_an_epoch=network.probes_an_epoch,
            )
        )

    def wired(self, parts: NodeParts) -> NodeDaemon:
        """Return the daemon of the life that begins."""
        return NodeDaemon(parts, self.counters[-1])

    async def start(self) -> None:
        await super().start()
        if self.network.waits:
            await until(lambda: self.daemon.ready, READY_WITHIN, f"{self.name} is ready")

    @property
    def routes(self) -> list[CentralRoute]:
        return self.daemon.central.routes.held

    async def listen(self, topic: Any = ONE, where: str = "") -> Ear:
        """Subscribe, and collect what comes."""
        interest = Interest(topic, parse_where(where, topic.attributes))
        return Ear(self.network, await self.daemon.service.subscribe(interest))  # type: ignore[arg-type]


class CentralNetworkOfDaemons(SmallCentral):
    """The network, and what tests ask of it."""

    def __init__(self, nursery: trio.Nursery, profile: str, seed: int, probes_an_epoch: float) -> None:
        super().__init__(nursery, profile, seed, None)
        self.probes_an_epoch = probes_an_epoch
        self.waits = True
        self.traces: Path | None = None
        self.tracers: list[FileTracer] = []
        self.nodes: list[Node] = []

    def tracer_of(self, name: str, env: Environment) -> Tracer:
        """Return what a daemon traces with."""
        if self.traces is None:
            return NoTracer()
        self.tracers.append(FileTracer(self.traces, name, name, BEGIN, EPOCH_SECONDS, env))
        return self.tracers[-1]

    def node(self, name: str) -> Node:
        """Make a daemon that is not started yet."""
        self.nodes.append(Node(self, name))
        return self.nodes[-1]

    def count(self, name: str) -> int:
        return sum(member.count(name) for member in [*self.members, *self.nodes] if name in member.meanings)


@asynccontextmanager
async def daemons(
    count: int = 2,
    profile: str = "hardened",
    seed: int = 1,
    probes_an_epoch: float = 0.0,
    traces: Path | None = None,
) -> AsyncIterator[CentralNetworkOfDaemons]:
    """A network that is up; at the end nobody may have met an error of its own program."""
    async with trio.open_nursery() as nursery:
        network = CentralNetworkOfDaemons(nursery, profile, seed, probes_an_epoch)
        network.traces = traces
        await network.up()
        for number in range(count):
            await network.node(f"node-{number}").start()
        yield network
        assert network.count("internal_errors") == 0
        nursery.cancel_scope.cancel()
    for tracer in network.tracers:
        tracer.close()
