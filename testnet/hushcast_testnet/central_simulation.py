"""A simulated run on the central system: server, proxies and nodes, all of which may die and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from hushcast_local.outbox import Publication
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.central_members import CentralWorld, ProxyLife, ServerLife, UserLife
from hushcast_testnet.faults import come_back, keep_churning
from hushcast_testnet.lives import Life
from hushcast_testnet.scenario import Result, Scenario
from hushcast_testnet.simulated_run import Listening, Sent, SimulatedRun


class CentralSimulation(SimulatedRun):
    """One run on the central system. What is killed comes back: nobody else could take a server's place."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        self._world = CentralWorld(scenario, call_at)
        super().__init__(scenario, progress, self._world.env)
        self._server = ServerLife(self._world)
        self._proxies = [ProxyLife(self._world, keys) for keys in self._world.proxies]
        self._users = [UserLife(self._world, f"client-{number}") for number in range(scenario.nodes)]
        self._churning = trio.CancelScope()

    async def run(self) -> Result:
        """Run, and close the traces."""
        try:
            return await super().run()
        finally:
            self._world.close()

    @property
    def _lives(self) -> list[Life]:
        return [self._server, *self._proxies, *self._users]

    async def _start(self, nursery: trio.Nursery) -> None:
        served = counted(len(self._users), "node")
        self._progress(f"starting the server, {len(self._proxies)} proxies and {served}")
        for life in (self._server, *self._proxies):
            await life.start(nursery)
        await self._start_all(self._users, nursery)

    def _nodes(self) -> list[UserLife]:
        return self._users

    def _subscribers(self) -> list[UserLife]:
        return self._env.sample(self._users, self._scenario.subscribers)

    async def _listen(self, listening: Listening, nursery: trio.Nursery) -> None:
        """Listen, in each life of the node anew."""
        await super()._listen(listening, nursery)
        again = super()._listen
        assert isinstance(listening.node, UserLife)
        listening.node.listeners.append(lambda: nursery.start_soon(again, listening, nursery))

    def _break(self, nursery: trio.Nursery) -> None:
        """Kill the server, all proxies and a share of the nodes at once, and let any come and go."""
        faults = self._scenario.faults
        if faults.kill:
            nodes = self._env.sample(self._users, round(faults.kill * len(self._users)))
            for life in (self._server, *self._proxies, *nodes):
                life.kill()
                nursery.start_soon(come_back, life, self._env, nursery)
        nursery.start_soon(self._churn, nursery)

    async def _churn(self, nursery: trio.Nursery) -> None:
        with self._churning:
            await keep_churning(self._scenario.faults, self._lives, self._env, nursery)

    async def _settle(self) -> None:
        """Let all come back before the last arrivals are waited for."""
        self._churning.cancel()
        while not all(life.is_up for life in self._lives):  # noqa: ASYNC110 - a mock clock makes waiting free
            await trio.sleep(1)  # virtual seconds
        await super()._settle()

    def _accepted(self) -> list[tuple[Sent, Publication]]:
        """Return what has a receipt: its node may have died since, but its outbox is on disk."""
        waiting = {one["id"] for user in self._users for one in user.daemon.service.outbox()}
        all_sent = [(sent, sent.publication) for sent in self._sent if sent.publication is not None]
        return [(sent, one) for sent, one in all_sent if one.message.id.hex() not in waiting]

    def _figures(self) -> dict[str, Any]:
        accepted = self._accepted()
        passed = sum(
            proxy.counters["publications_passed"] + proxy.counters["deliveries_passed"]
            for proxy in self._proxies
        )
        return {
            "transmissions": passed + self._server.counters["deliveries_sent"],
            # One to the server, and two to each subscriber: by a proxy.
            "ideal": len(accepted) * (1 + 2 * self._scenario.subscribers),
            "told": {},
            "companions": {},
            "conditions": {},
        }
