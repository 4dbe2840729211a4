"""The tomography service as a daemon: it holds the newest tree, hears brokers, and answers who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.program import TOMOGRAPHY
from hushcast_brokers.tomography.service_links import ServiceLinks
from hushcast_brokers.tree_comparison import compare_trees
from hushcast_brokers.tree_request import BrokerContact, ask_for_tree
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.broker_tree import MAX_BROKERS, BrokerTree
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tomography.frames import (
    MAX_TOMOGRAPHY_FRAME,
    ToService,
    decode_to_service,
)
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.tomography_service import SETTLE, AnswerTimes, TomographyService
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.listening_daemon import ListeningDaemon
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import Store
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel
from hushcast_runtime.transports.connection_guard import ConnectionGuard

ROOT_ASKED_EVERY = 300.0  # seconds; brokers that are linked tell of a newer tree before
FIRST_ASKED_EVERY = 10.0  # seconds, while no tree is held at all


@dataclass(frozen=True)
class TomographyParts:
    """What a service is made of."""

    network: BrokersNetwork
    seed: Seed
    """Proves it on links, and signs its answers."""
    service: Seed
    """The key of its address."""
    root: Address
    """The root's address, by the network's file."""
    cap: int
    """For how many sources on one topic an edge broker may vouch."""
    env: Environment
    """With the machine's clock as it is."""
    transport: Transport
    store: Store
    counters: Counters
    settle: float = SETTLE
    """Seconds for which a filter is to be anonymous again before those who watch hear of it."""


class TomographyDaemon(ListeningDaemon):
    """One service. `run` makes it live. What brokers stated is in memory: each link begins with all of it."""

    def __init__(self, parts: TomographyParts) -> None:
        super().__init__(parts.env, parts.network.calendar, parts.counters)
        self._parts = parts
        self._held = HeldTree(parts.network, parts.store, parts.counters)
        self._admission = Admission(parts.seed.public(), parts.network.calendar, self._env, lambda: 0)
        self._askers: ServiceLinks

    @property
    def tree(self) -> BrokerTree | None:
        """The newest tree that it holds."""
        return self._held.newest

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when it listens."""
        parts = self._parts
        async with trio.open_nursery() as nursery:
            context = Context(self._env, parts.store, parts.counters, NoTracer(), nursery.start_soon)
            nursery.start_soon(parts.store.run)
            await migrate(parts.store, TOMOGRAPHY.migrations.load())
            askers = self._askers = ServiceLinks(self._held, self._admission, context)
            await self._held.load()
            listener = self.listener = await open_address(parts.service, parts.transport, parts.store)
            guard = ConnectionGuard(self._accept, askers.serve, MAX_BROKERS, self._env, parts.counters)
            nursery.start_soon(self._follow_tree)
            nursery.start_soon(self._ask_root)
            nursery.start_soon(askers.run)
            nursery.start_soon(self._admission.run)
            nursery.start_soon(listener.serve, guard.admit)
            task_status.started()

    def status(self) -> dict[str, Any]:
        """Describe it, by no key and no filter."""
        tree = self.tree
        return {
            "tree_version": tree.version if tree is not None else None,
            "brokers_listed": len(tree.brokers) if tree is not None else 0,
            "brokers_connected": self._askers.connected,
            **self._askers.status(),
            "difficulty": self._admission.difficulty,
            "clock": self.clock.describe(),
            "counters": self.counters.as_dict(),
        }

    async def _follow_tree(self) -> None:
        """Go by each newer tree, until cancelled."""
        while True:
            tree = self._held.newest
            if tree is not None:
                if self._askers.service is None:
                    parts = self._parts
                    gathered = StatedFilters(tree, parts.cap)
                    self._askers.service = TomographyService(
                        parts.seed, gathered, parts.network.calendar, AnswerTimes(settle=parts.settle)
                    )
                else:
                    self._askers.service.use(tree)
                self._askers.follow(tree)
            if tree is self._held.newest:
                await self._held.changed()

    async def _ask_root(self) -> None:
        """Ask the root for a newer tree now and then: brokers may be linked or not."""
        parts = self._parts
        root = BrokerContact(parts.network.root, parts.root)
        while True:
            try:
                await ask_for_tree(parts.network, self._held, root, parts.transport, self._env)
            except (PeerError, TransportError) as error:
                log.info("the root does not answer", reason=str(error))
            await trio.sleep(ROOT_ASKED_EVERY if self._held.newest is not None else FIRST_ASKED_EVERY)

    async def _accept(self, stream: trio.abc.Stream) -> Channel[ToService]:
        """Run the handshake, and let whoever has the older tree have the newer one."""
        parts = self._parts
        link = Link.respond(
            parts.network.id, parts.seed, self._env.randomness, MAX_TOMOGRAPHY_FRAME, self._held.view
        )
        channel, established = await accept_channel(stream, link, decode_to_service)
        self.counters.add("links_opened")
        await compare_trees(channel, established.view, self._held)
        return channel
