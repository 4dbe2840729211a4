"""Machines of their own: whose work waits for whose, and what of it is laid upon whom."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from statistics import median

import pytest
import trio
import trio.testing

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet.compare.machine_transport import MachineNetwork
from hushcast_testnet.compare.machines import House, Machine, Processors, Queue, SharedFunction
from hushcast_testnet.compare.tor_work import DELAYS, DelaysApart, LinearCost, TorWork, measured
from hushcast_testnet.simulations.clock_calls import ClockCalls

NOTHING = LinearCost(0.0, 0.0)
WORK = TorWork(
    (0.5,),
    (0.1,),
    (2.0,),
    LinearCost(0.2, 0.0),
    0.1,
    0.3,
    0.4,
    LinearCost(0.0, 0.001),
    LinearCost(0.0, 0.002),
    DelaysApart(40, (2.0, 3.0), (0.5,), (4.0,)),
)
"""Round numbers: a connection that is alone takes 0.5 s, a way 0.1, a tor 0.2 to open and 0.1 to accept."""
LINE = 514 * 8 * 1000.0  # bits a second: a thousand cells


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def run(
    scene: Callable[[Processors, MachineNetwork], Awaitable[None]],
    work: TorWork = WORK,
    bits_a_second: float = LINE,
) -> None:
    clock, processors = trio.testing.MockClock(autojump_threshold=0), Processors()
    wires = MachineNetwork(work, bits_a_second, simulated_environment(1), ClockCalls(clock).call_at)

    async def main() -> None:
        with trio.fail_after(1000):
            await scene(processors, wires)

    trio.run(main, clock=clock, instruments=[processors])


def test_a_queue_does_one_thing_after_the_other() -> None:
    queue = Queue()
    assert queue.work(2.0, since=1.0) == 3.0
    assert queue.work(1.0, since=2.0) == 4.0  # it waits
    assert queue.work(1.0, since=9.0) == 10.0  # it was idle meanwhile
    assert queue.worked == 4.0


def test_in_one_house_queues_wait_for_a_core_and_for_the_tor() -> None:
    house, processors = House(2), Processors()
    one, two, three = (Machine(str(n), processors, house) for n in range(3))
    assert one.processor.work(2.0, since=1.0) == 3.0
    assert two.processor.work(1.0, since=1.0) == 2.0
    assert three.processor.work(1.0, since=1.0) == 3.0  # it waits for the second core
    assert two.processor.work(1.0, since=3.0) == 4.0
    assert one.tor is two.tor
    assert (one.tor.work(1.0, since=3.0), two.tor.work(1.0, since=3.0)) == (4.0, 5.0)


def test_work_is_laid_upon_the_machine_of_the_task_and_of_those_it_starts() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        one, other = Machine("one", processors), Machine("other", processors)

        async def works(seconds: float) -> None:
            await trio.lowlevel.checkpoint()
            spin(seconds)

        async def daemon(machine: Machine, seconds: float) -> None:
            machine.run_here()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(works, seconds)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(daemon, one, 0.05)
            nursery.start_soon(daemon, other, 0.02)
        spin(0.02)  # nobody's
        assert trio.current_time() == 0.0  # virtual time did not pass
        assert one.processor.worked == pytest.approx(0.05, abs=0.015)
        assert other.processor.worked == pytest.approx(0.02, abs=0.015)

    run(scene)


@pytest.mark.slow
def test_the_collectors_work_is_nobodys() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        machine = Machine("one", processors)
        machine.run_here()
        unwatch = processors.watch_collector()
        many = [[number] for number in range(300_000)]
        before = machine.done()
        began = time.thread_time()
        gc.collect()
        taken = time.thread_time() - began
        assert machine.done() - before < taken / 2
        unwatch()
        del many

    run(scene)


def test_shared_work_is_done_once_and_laid_upon_each() -> None:
    calls: list[int] = []

    def derive(number: int) -> int:
        calls.append(number)
        spin(0.03)
        return 2 * number

    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        shared = SharedFunction(derive, processors)
        for name in ("one", "other"):
            machine = Machine(name, processors)
            machine.run_here()
            assert shared(4) == 8
            machine.done()
            assert machine.processor.worked == pytest.approx(0.03, abs=0.01)
        assert calls == [4]

    run(scene)


def test_connecting_takes_both_tors_and_each_does_one_after_the_other() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        server = Machine("server", processors)
        listener = await wires.on(server).listen(Seed(bytes(32)))
        began = trio.current_time()
        await listener.published()
        assert trio.current_time() - began == pytest.approx(2.0, abs=0.01)
        times: list[float] = []

        async def connect(number: int) -> None:
            client = Machine(f"client {number}", processors)
            began = trio.current_time()
            await wires.on(client).connect(listener.address, "isolation")
            times.append(trio.current_time() - began)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(connect, number)
        # The first as if it were alone; the others wait for the service's tor, and not for each other's.
        assert sorted(times) == pytest.approx([0.5, 0.6, 0.7, 0.8], abs=0.01)

    run(scene)


def test_who_does_not_listen_is_not_reached() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        server, client = Machine("server", processors), Machine("client", processors)
        transport = wires.on(server)
        listener = await transport.listen(Seed(bytes(32)))
        transport.vanish()
        with pytest.raises(TransportError):
            await wires.on(client).connect(listener.address, "isolation")

    run(scene)


async def pair(
    wires: MachineNetwork, one: Machine, other: Machine
) -> tuple[trio.abc.Stream, trio.abc.Stream]:
    listener = await wires.on(other).listen(Seed(bytes(32)))
    accepted: list[trio.abc.Stream] = []
    there = trio.Event()

    async def handle(stream: trio.abc.Stream) -> None:
        accepted.append(stream)
        there.set()
        await trio.sleep_forever()

    trio.lowlevel.spawn_system_task(listener.serve, handle)
    near = await wires.on(one).connect(listener.address, "isolation")
    await there.wait()
    return near, accepted[0]


def test_bytes_pass_the_lines_the_tors_and_wait_for_a_busy_processor() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        one, other = Machine("one", processors), Machine("other", processors)
        near, far = await pair(wires, one, other)
        began = trio.current_time()
        await near.send_all(bytes(4980))  # ten cells: 10 ms and 20 ms at the tors, 10 ms on each line
        got = 0
        while got < 4980:
            got += len(await far.receive_some())
        assert trio.current_time() - began == pytest.approx(0.1 + 0.01 + 0.02 + 0.01 + 0.01, abs=0.005)
        other.processor.work(3.0, trio.current_time())
        began = trio.current_time()
        await near.send_all(b"x")
        assert await far.receive_some() == b"x"
        assert trio.current_time() - began == pytest.approx(3.0, abs=0.01)
        await near.send_all(b"last")
        await near.aclose()
        assert await far.receive_some() == b"last"  # the end comes behind what is under way
        assert await far.receive_some() == b""

    run(scene)


def test_who_is_busy_sends_later() -> None:
    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        one, other = Machine("one", processors), Machine("other", processors)
        near, far = await pair(wires, one, other)
        one.processor.work(2.0, trio.current_time())
        began = trio.current_time()
        await near.send_all(b"x")
        assert await far.receive_some() == b"x"
        assert trio.current_time() - began == pytest.approx(2.1, abs=0.02)

    run(scene)


def test_circuits_held_make_opening_dearer_for_who_opened_them() -> None:
    work = replace(WORK, open_cpu=LinearCost(0.2, 0.1), send_cpu=NOTHING, receive_cpu=NOTHING)

    async def scene(processors: Processors, wires: MachineNetwork) -> None:
        server, client = Machine("server", processors), Machine("client", processors)
        listener = await wires.on(server).listen(Seed(bytes(32)))
        streams = []
        for taken in (0.2, 0.3, 0.4):
            before = client.tor.worked
            streams.append(await wires.on(client).connect(listener.address, "isolation"))
            assert client.tor.worked - before == pytest.approx(taken)
        assert (client.circuits, server.circuits) == (3, 0)
        for stream in streams:
            await stream.aclose()
        assert client.circuits == 0

    run(scene, work)


def test_what_a_distance_adds_grows_with_it() -> None:
    assert WORK.at(0) is WORK
    there, further = WORK.at(40), WORK.at(80)
    assert all(getattr(there, name) == pytest.approx(getattr(WORK.apart, name)) for name in DELAYS)
    assert further.connect_seconds == pytest.approx((3.5, 5.5))
    assert further.one_way_seconds == pytest.approx((0.9,))
    assert there.describe()["open_cpu"] == WORK.describe()["open_cpu"]


def test_what_was_measured_makes_sense() -> None:
    work = measured()
    # A way through two circuits is one of several between tors, and to connect takes several ways.
    ways = [median(getattr(work.apart, name)) / (work.apart.ms / 1000) for name in DELAYS]
    assert 4 < ways[1] < 12
    assert ways[1] < ways[0] < ways[2]
    assert 0.01 < sum(work.connect_seconds) / len(work.connect_seconds) < 5
    assert 0.0001 < work.accept_cpu < work.open_cpu(0) < 0.1
    assert 0 <= work.open_cpu.each < 0.001
    assert 0 < work.send_cpu(1) < work.receive_cpu(1) < 0.001
    assert all(value > 0 for value in work.describe().values())
