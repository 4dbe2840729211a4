"""A simulated run in which daemons of their own serve all others, and all of them may die and come back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import trio

from hushcast_local.outbox import OutboxPublication
from hushcast_testnet.simulations.faults import come_back, keep_churning
from hushcast_testnet.simulations.lives import Life, SimulatedWorld, UserLife
from hushcast_testnet.simulations.scenario import Scenario, SimulationResult
from hushcast_testnet.simulations.simulated_run import SimulatedListener, SimulatedPublication, SimulatedRun


class ServedSimulation(SimulatedRun):
    """One run. What is killed comes back: nobody else could take the place of what serves."""

    def __init__(
        self,
        scenario: Scenario,
        progress: Callable[[str], None],
        world: SimulatedWorld,
        serving: Sequence[Life],
        users: Sequence[UserLife],
    ) -> None:
        super().__init__(scenario, progress, world.env)
        self._close = world.close
        self._serving = serving
        self._users = users
        self._churning = trio.CancelScope()

    @abstractmethod
    def _transmissions(self) -> tuple[int, int]:
        """Return how many times messages were sent on, and how many would do."""

    async def run(self) -> SimulationResult:
        """Run, and close the traces."""
        try:
            return await super().run()
        finally:
            self._close()

    @property
    def _lives(self) -> list[Life]:
        return [*self._serving, *self._users]

    async def _start(self, nursery: trio.Nursery) -> None:
        for life in self._serving:
            await life.start(nursery)
        await self._start_all(self._users, nursery)

    def _nodes(self) -> Sequence[UserLife]:
        return self._users

    def _subscribers(self) -> Sequence[UserLife]:
        return self._env.sample(list(self._users), self._scenario.subscribers)

    async def _listen(self, listening: SimulatedListener, nursery: trio.Nursery) -> None:
        """Listen, in each life of the node anew."""
        await super()._listen(listening, nursery)
        again = super()._listen
        assert isinstance(listening.node, UserLife)
        listening.node.listeners.append(lambda: nursery.start_soon(again, listening, nursery))

    def _break(self, nursery: trio.Nursery) -> None:
        """Kill all that serves and a share of the nodes at once, and let any come and go."""
        faults = self._scenario.faults
        if faults.kill:
            nodes = self._env.sample(list(self._users), round(faults.kill * len(self._users)))
            for life in (*self._serving, *nodes):
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

    def _accepted(self) -> list[tuple[SimulatedPublication, OutboxPublication]]:
        """Return what has a receipt: its node may have died since, but its outbox is on disk."""
        waiting = {one["id"] for user in self._users for one in user.daemon.service.outbox()}
        all_sent = [(sent, sent.publication) for sent in self._sent if sent.publication is not None]
        return [(sent, one) for sent, one in all_sent if one.message.id.hex() not in waiting]

    def _figures(self) -> dict[str, Any]:
        sent, ideal = self._transmissions()
        nothing: dict[str, Any] = {"told": {}, "companions": {}, "conditions": {}}
        return {"transmissions": sent, "ideal": ideal, **nothing, "hidden": self._hidden()}

    def _hidden(self) -> dict[str, int]:
        """Return how many subscriptions hide among others, and how."""
        return {}
