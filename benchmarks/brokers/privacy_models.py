"""Figure: a publication through one broker with ten clients that want it, under each privacy model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import trio
import trio.testing

from benchmarks.figures import Effort, Figure, alternate, at_least
from hushcast_protocol.brokers.privacy import Privacy
from hushcast_testnet.compare.machines import Machine, Processors
from hushcast_testnet.simulations.broker_simulation import BrokersSimulation
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.scenario import Scenario

CLIENTS = 10
PUBLICATIONS = 200  # a run, of one topic: its words recur
EDGE = "edge-1"

MODELS = {
    "clear": Privacy(),
    "community": Privacy("community"),
    "full, XOR": Privacy("full", 3, "paper"),
    "full, in the group": Privacy("full", 3),
}


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure models in turns: publications a second of the edge broker's processor."""
    count = effort.amount(PUBLICATIONS)
    found = alternate(effort.runs, {name: partial(_rate, privacy, count) for name, privacy in MODELS.items()})
    told = f"publications a second through a broker with {CLIENTS} clients, CPU of the broker"
    for name in MODELS:
        if name != "clear":
            target = 0.3 if name == "full, in the group" else None
            yield at_least(f"{told}, {name}: at least times", found[name], "clear", found["clear"], target)


def _rate(privacy: Privacy, count: int) -> float:
    """Return how many publications go through the edge broker in a second of its processor."""
    few, many = (_cost(privacy, number) for number in (count // 10, count))
    return (count - count // 10) / (many - few)  # what it takes to start and to subscribe is in both


def _cost(privacy: Privacy, count: int) -> float:
    """Return the seconds that the edge broker worked."""
    processors = Processors()
    machine = Machine(EDGE, processors)
    scenario = Scenario(CLIENTS, CLIENTS, count, carrier="brokers", fan_out=CLIENTS, privacy=privacy)
    clock = trio.testing.MockClock(autojump_threshold=0)
    simulation = BrokersSimulation(scenario, lambda text: None, ClockCalls(clock).call_at)
    (edge,) = (one for one in simulation._brokers if one.name == EDGE)
    live = edge._live

    async def live_there(*, task_status: trio.TaskStatus[None]) -> None:
        machine.run_here()
        await live(task_status=task_status)

    edge._live = live_there  # type: ignore[method-assign]
    ended = processors.watch_collector()
    try:
        trio.run(simulation.run, clock=clock, instruments=[processors])
    finally:
        ended()
    return machine.processor.worked
