"""A simulated run over brokers: root, inner and edge brokers, and nodes, each at one edge broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import trio

from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.simulations.broker_members import (
    BrokerLife,
    BrokersUserLife,
    BrokersWorld,
    TomographyLife,
)
from hushcast_testnet.simulations.made_up_children import MadeUpChild
from hushcast_testnet.simulations.scenario import Scenario
from hushcast_testnet.simulations.served_simulation import ServedSimulation
from hushcast_testnet.simulations.simulated_run import SimulatedListener, SimulatedPublication


class BrokersSimulation(ServedSimulation):
    """One run over brokers."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        world = self._world = BrokersWorld(scenario, call_at)
        self._brokers = [BrokerLife(world, keys) for keys in world.brokers]
        users = [
            BrokersUserLife(world, f"client-{number}", world.keys[edge])
            for number, edge in enumerate(world.shape.edges)
        ]
        self._at: dict[Topic, list[SimulatedListener]] = defaultdict(list)  # who subscribes to what
        service = [TomographyLife(world, world.tomography)] if world.tomography is not None else []
        super().__init__(scenario, progress, world, [*self._brokers, *service], users)

    async def _start(self, nursery: trio.Nursery) -> None:
        served = counted(len(self._users), "node")
        self._progress(f"starting {len(self._brokers)} brokers and {served}")
        await super()._start(nursery)
        world = self._world
        if world.community is not None:
            root = BrokerContact(world.keys["root"], world.root)
            transport, env = world.wires.transport(), world.environment("keeper")
            await world.community.begin(world.network, root, world.keys.values(), transport, env)
            await self._admitted()

    async def _admitted(self) -> None:
        """Wait until all nodes have heard that they are members."""
        for user in self._users:
            membership = user.daemon.brokers.membership
            assert membership is not None
            while membership.current() is None:
                membership.missing()  # it asks now, not at a moment of its own
                await trio.sleep(1)  # virtual seconds

    async def _listen(self, listening: SimulatedListener, nursery: trio.Nursery) -> None:
        self._at[listening.interest.topic].append(listening)
        await super()._listen(listening, nursery)

    async def _afterwards(self) -> None:
        """Under layers, have brokers make up a child each, those below first: who asks runs no more."""
        scenario = self._scenario
        if scenario.traces is None or scenario.privacy.model != "full":
            return
        self._progress("brokers make up children")
        for life in reversed(self._brokers):
            if life.keys.role != "root" and life.tree is not None:
                life.kill()
                await MadeUpChild(self._world, life.keys, life.tree).ask(scenario.traces)

    def _transmissions(self) -> tuple[int, int]:
        sent = sum(
            broker.counters["messages_forwarded"] + broker.counters["publications_accepted"]
            for broker in self._brokers
        )
        return sent, sum(1 + self._links(sent) for sent, _ in self._accepted())

    def _links(self, sent: SimulatedPublication) -> int:
        """Return how many links lead from the root to those who want a message."""
        there = [one for one in self._at[sent.topic] if one.interest.predicate.matches(sent.values)]
        parents = {seat.key: seat.parent for seat in self._world.seats}
        links: set[bytes] = set()
        for one in there:
            assert isinstance(one.node, BrokersUserLife)
            broker: PublicKey | None = one.node.edge
            while broker in parents and broker not in links:
                links.add(broker)
                broker = parents[broker]
        return len(links) + len(there)

    def _hidden(self) -> dict[str, int]:
        if self._scenario.terms is None:
            return {}
        told = [one for user in self._users for one in user.daemon.service.subscriptions()]
        shown = sum(one.get("outside") is True for one in told)
        return {"subscriptions": len(told), "shown": shown, "nothing": len(told) - shown}
