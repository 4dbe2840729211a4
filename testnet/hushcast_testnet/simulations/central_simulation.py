"""A simulated run on the central system: server, proxies and nodes."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_node.carrier_parts import CentralParts
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.simulations.central_members import CentralWorld, ProxyLife, ServerLife
from hushcast_testnet.simulations.lives import UserLife
from hushcast_testnet.simulations.scenario import Scenario
from hushcast_testnet.simulations.served_simulation import ServedSimulation


class CentralSimulation(ServedSimulation):
    """One run on the central system."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        world = CentralWorld(scenario, call_at)
        self._server = ServerLife(world)
        self._proxies = [ProxyLife(world, keys) for keys in world.proxies]
        parts = CentralParts(world.network, world.profile, world.listed)
        users = [UserLife(world, f"client-{number}", parts) for number in range(scenario.nodes)]
        super().__init__(scenario, progress, world, (self._server, *self._proxies), users)

    async def _start(self, nursery: trio.Nursery) -> None:
        served = counted(len(self._users), "node")
        self._progress(f"starting the server, {len(self._proxies)} proxies and {served}")
        await super()._start(nursery)

    def _transmissions(self) -> tuple[int, int]:
        passed = sum(
            proxy.counters["publications_passed"] + proxy.counters["deliveries_passed"]
            for proxy in self._proxies
        )
        # One to the server, and two to each subscriber: by a proxy.
        ideal = len(self._accepted()) * (1 + 2 * self._scenario.subscribers)
        return passed + self._server.counters["deliveries_sent"], ideal
