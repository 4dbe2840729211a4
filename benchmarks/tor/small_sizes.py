"""The experiments of `hushcast testnet compare` at a small size, with processes over a private Tor.

Run it with `python -m benchmarks.tor.small_sizes [DAEMONS]`; it prints what both carriers took, and what the
model says of as many: with a machine for each daemon, as in the comparison, and with one of two cores and one
tor for all, which is what the processes have. What these have besides, and the model has not: the relays of
the private Tor on the same cores, disks, and other processes' turns. So `cpu_` says what a publication takes
of whom, in seconds of CPU, less what they take while nothing is published.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import trio

import hushcast
from hushcast_runtime.logs import configure_logs
from hushcast_testnet import testnet
from hushcast_testnet.compare.comparison import BITS_A_SECOND
from hushcast_testnet.compare.experiments import ExperimentPlan, ExperimentPoint, measure
from hushcast_testnet.compare.modelled_network import NetworkScene
from hushcast_testnet.compare.tor_work import measured
from hushcast_testnet.inventory import CarrierName, Testnet, load, running

ROUNDS = 20  # publications of one, and rounds of all at once
EPOCH = 300  # seconds: no other starts meanwhile
WITHIN = 300.0  # seconds for any of it
TOPIC = "comparison"
CARRIERS: dict[str, CarrierName] = {"central": "central", "tree": "overlay"}

LOOPBACK = 1e10  # bits a second
IDLE = 10.0  # seconds in which nobody publishes

Times = dict[str, float]
Groups = dict[str, list[int]]
"""Processes by what they are part of."""


def cpu_of(groups: Groups) -> Times:
    """Return the seconds of CPU that the processes of each group have taken, all threads of them."""
    return {
        name: sum(
            int((thread / "schedstat").read_text().split()[0]) / 1e9
            for pid in pids
            for thread in Path(f"/proc/{pid}/task").iterdir()
        )
        for name, pids in groups.items()
    }


async def experiments(sockets: list[Path], groups: Groups) -> Times:
    """Have all subscribe at once, then one publish, then all; return seconds by figure, and of CPU."""
    arrived: dict[tuple[str, int], float] = {}
    news = trio.Condition()

    async def listen(number: int, *, task_status: trio.TaskStatus[None]) -> None:
        async with hushcast.connect(sockets[number]) as daemon, daemon.subscribe(TOPIC) as messages:
            task_status.started()
            async for message in messages:
                arrived[message.id, number] = time.perf_counter()
                async with news:
                    news.notify_all()

    async def publish(publishers: list[int]) -> tuple[float, float]:
        """Return the mean time until each has its own, and the longest until all have one."""
        sent: dict[int, str] = {}
        began = time.perf_counter()

        async def one(number: int) -> None:
            async with hushcast.connect(sockets[number]) as daemon:
                sent[number] = (await daemon.publish(TOPIC, "a small text string")).id

        async with trio.open_nursery() as nursery:
            for number in publishers:
                nursery.start_soon(one, number)
        whole = [(message, number) for message in sent.values() for number in range(len(sockets))]
        async with news:
            while not all(pair in arrived for pair in whole):
                await news.wait()
        own = statistics.fmean(arrived[message, number] - began for number, message in sent.items())
        return own, max(arrived[pair] for pair in whole) - began

    with trio.fail_after(WITHIN):
        async with trio.open_nursery() as nursery:
            began = time.perf_counter()
            async with trio.open_nursery() as subscribing:
                for number in range(len(sockets)):
                    subscribing.start_soon(nursery.start, listen, number)
            subscribed = time.perf_counter() - began
            await trio.sleep(5.0)  # links are opened
            moments = [(time.perf_counter(), cpu_of(groups))]
            await trio.sleep(IDLE)
            moments.append((time.perf_counter(), cpu_of(groups)))
            alone = [await publish([number % len(sockets)]) for number in range(ROUNDS)]
            moments.append((time.perf_counter(), cpu_of(groups)))
            together = [await publish(list(range(len(sockets)))) for _ in range(ROUNDS)]
            nursery.cancel_scope.cancel()
    return {
        "figure3": subscribed,
        "figure4": statistics.median(last for _, last in alone),
        "figure5": statistics.median(own for own, _ in together),
        **{f"cpu_{name}": _each(name, moments) for name in groups},
    }


def _each(name: str, moments: list[tuple[float, Times]]) -> float:
    """Return what a publication took of a group; `moments` are before and after idling, and at the end."""
    (began, before), (idled, between), (ended, after) = moments
    idle = (between[name] - before[name]) / (idled - began)
    return (after[name] - between[name] - idle * (ended - idled)) / ROUNDS


def really(carrier: CarrierName, daemons: int) -> Times:
    """Measure on a testnet of processes over a private Tor."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "testnet"
        clients = 0 if carrier == "overlay" else None  # all of the central system's are
        testnet.up(directory, daemons, clients, "tor", EPOCH, carrier=carrier)
        try:
            network = load(directory)
            return trio.run(experiments, [Path(str(node.socket)) for node in network.nodes], _groups(network))
        finally:
            testnet.down(directory)


def _groups(network: Testnet) -> Groups:
    assert network.tor is not None
    daemons, tors = running(network), network.tor.processes
    return {
        "daemons": [process.pid for process in daemons],
        "tor": [process.pid for process in tors if process.name.startswith("tor client")],
        "relays": [process.pid for process in tors if not process.name.startswith("tor client")],
    }


def modelled(system: str, daemons: int, cores: int | None) -> Times:
    """Measure on modelled machines: one for each, or one for all with so many cores."""
    found: list[ExperimentPoint] = []
    plan = ExperimentPlan((daemons,), ROUNDS, daemons, (daemons,))
    line = BITS_A_SECOND if cores is None else LOOPBACK
    # The processes have just started, and have no mailbox to spare.
    scene = NetworkScene(system, "hardened", daemons, 1, measured(), line, cores, attached=False)
    measure(scene, plan, lambda _: None, lambda _, points, load: found.extend(points))
    return {
        f"figure{figure}": statistics.median(point.seconds for point in found if point.figure == figure)
        for figure in (3, 4, 5)
    }


def main() -> None:
    """Measure both carriers both ways."""
    configure_logs("error", as_json=False)
    daemons = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    for system, carrier in CARRIERS.items():
        tell(system, "model", daemons, modelled(system, daemons, None))
        tell(system, "model, two cores", daemons, modelled(system, daemons, 2))
        tell(system, "processes", daemons, really(carrier, daemons))


def tell(system: str, how: str, daemons: int, times: Times) -> None:
    """Print a line."""
    rounded = {name: round(seconds, 3) for name, seconds in times.items()}
    print(json.dumps({"system": system, "how": how, "daemons": daemons} | rounded), flush=True)


if __name__ == "__main__":
    main()
