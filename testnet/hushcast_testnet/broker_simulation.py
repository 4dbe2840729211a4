"""A simulated run over brokers: root, inner and edge brokers, and nodes, each at one edge broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import trio

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.broker_members import BrokerLife, BrokersUserLife, BrokersWorld
from hushcast_testnet.scenario import Scenario
from hushcast_testnet.served_simulation import ServedSimulation
from hushcast_testnet.simulated_run import Listening


class BrokersSimulation(ServedSimulation):
    """One run over brokers."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        world = self._world = BrokersWorld(scenario, call_at)
        self._brokers = [BrokerLife(world, keys) for keys in world.brokers]
        users = [
            BrokersUserLife(world, f"client-{number}", world.keys[edge])
            for number, edge in enumerate(world.shape.edges)
        ]
        self._at: dict[Topic, list[BrokersUserLife]] = defaultdict(list)  # who subscribes to what
        super().__init__(scenario, progress, world, self._brokers, users)

    async def _start(self, nursery: trio.Nursery) -> None:
        served = counted(len(self._users), "node")
        self._progress(f"starting {len(self._brokers)} brokers and {served}")
        await super()._start(nursery)

    async def _listen(self, listening: Listening, nursery: trio.Nursery) -> None:
        assert isinstance(listening.node, BrokersUserLife)
        self._at[listening.interest.topic].append(listening.node)
        await super()._listen(listening, nursery)

    def _transmissions(self) -> tuple[int, int]:
        sent = sum(
            broker.counters["messages_forwarded"] + broker.counters["publications_accepted"]
            for broker in self._brokers
        )
        return sent, sum(1 + self._links(sent.topic) for sent, _ in self._accepted())

    def _links(self, topic: Topic) -> int:
        """Return how many links lead from the root to a topic's subscribers."""
        parents = {seat.key: seat.parent for seat in self._world.seats}
        links: set[bytes] = set()
        for user in self._at[topic]:
            broker: PublicKey | None = user.edge
            while broker in parents and broker not in links:
                links.add(broker)
                broker = parents[broker]
        return len(links) + len(self._at[topic])
