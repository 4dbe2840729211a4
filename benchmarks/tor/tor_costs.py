"""What Tor takes of a daemon: measured on a private Tor, for the model that `hushcast testnet compare` runs.

`python -m benchmarks.tor.tor_costs FILE` writes what `hushcast_testnet.compare.tor_work` reads.
`python -m benchmarks.tor.tor_costs FILE MS` adds the delays of tors that are so many milliseconds apart.
Two client tors stand for two daemons' own: one has the services, the other connects. The CPU time of each is
its process's, less what it took in the same time while nothing happened; delays are those of connections that
nothing else disturbs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from benchmarks.tor.private_tor import READY_WITHIN, over_tor
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, TransportError
from hushcast_testnet import processes
from hushcast_testnet.compare.tor_work import DELAYS
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.distance import NEAR, Distance

SERVICES = 20
ALONE = 150  # connections, one after the other
TOGETHER = (100, 200, 300)  # connections held in the end; so many more are opened, some at once
BACK = 50  # connections by the tor that has accepted all those
AT_ONCE = 16  # of them being opened
PINGS = 6  # on each connection that is alone
PING = 400  # bytes: one cell of Tor
FRAMES = 4_000  # of a size, spread over the connections held
SIZES = (400, 4_000, 16_000)  # bytes
IDLE = 10.0  # seconds in which nothing happens
WITHIN = 60.0  # seconds for a connection


@dataclass
class Ends:
    """The two daemons' transports, and the processes of their tors."""

    serving: TorTransport
    connecting: TorTransport
    tors: tuple[int, int]

    def cpu(self) -> tuple[float, float]:
        """Return the seconds of CPU that the tors have taken: the serving one's, the connecting one's."""
        serving, connecting = (
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9 for pid in self.tors
        )
        return serving, connecting


async def idle(ends: Ends) -> tuple[float, float]:
    """Return the CPU that each tor takes in a second of doing nothing."""
    before = ends.cpu()
    await trio.sleep(IDLE)
    after = ends.cpu()
    return (after[0] - before[0]) / IDLE, (after[1] - before[1]) / IDLE


async def taken(ends: Ends, work: Callable[[], Awaitable[None]], count: int) -> tuple[float, float]:
    """Return the CPU that each tor takes for one of `count` pieces of work, above what it takes idle."""
    rest = await idle(ends)
    before, began = ends.cpu(), time.perf_counter()
    await work()
    await trio.sleep(1.0)  # what was begun ends
    seconds, after = time.perf_counter() - began, ends.cpu()
    serving, connecting = (after[end] - before[end] - rest[end] * seconds for end in (0, 1))
    return serving / count, connecting / count


async def echo(stream: trio.abc.Stream) -> None:
    """Answer each ping; take in everything else."""
    while data := await stream.receive_some():
        if data[:1] == b"p":
            await stream.send_all(data)


async def publish(ends: Ends, nursery: trio.Nursery, found: dict[str, Any]) -> list[Listener]:
    """Open services one after the other."""
    listeners: list[Listener] = []
    times: list[float] = []

    async def open_all() -> None:
        for _ in range(SERVICES):
            began = time.perf_counter()
            listener = await ends.serving.listen(Seed.draw(os.urandom))
            await listener.published()
            times.append(round(time.perf_counter() - began, 4))
            listeners.append(listener)
            nursery.start_soon(listener.serve, echo)

    found["publish_cpu"] = (await taken(ends, open_all, SERVICES))[0]
    found["publish_seconds"] = times
    return listeners


async def alone(ends: Ends, listeners: list[Listener], found: dict[str, Any]) -> None:
    """Connect, ping and close, one after the other."""
    opening: list[float] = []
    ways: list[float] = []

    async def one(number: int) -> None:
        began = time.perf_counter()
        stream = await ends.connecting.connect(listeners[number % SERVICES].address, os.urandom(8).hex())
        async with stream:
            opening.append(round(time.perf_counter() - began, 4))
            for _ in range(PINGS):
                await trio.sleep(0.02)
                began = time.perf_counter()
                await stream.send_all(b"p" * PING)
                got = 0
                while got < PING:
                    data = await stream.receive_some()
                    if not data:
                        raise TransportError("the connection broke")
                    got += len(data)
                ways.append(round((time.perf_counter() - began) / 2, 5))

    async def work() -> None:
        for number in range(ALONE):
            with trio.fail_after(WITHIN):
                await one(number)

    found["alone_cpu"] = await taken(ends, work, ALONE)
    found["connect_seconds"] = opening
    found["one_way_seconds"] = ways


async def together(ends: Ends, listener: Listener, back: Listener, found: dict[str, Any]) -> None:
    """Open many connections to one service, hold them, and send over them; open some `back` beside them."""
    held: list[trio.abc.Stream] = []
    limit = trio.CapacityLimiter(AT_ONCE)
    failed = 0

    async def open_one() -> None:
        nonlocal failed
        async with limit:
            try:
                with trio.fail_after(WITHIN):
                    held.append(await ends.connecting.connect(listener.address, os.urandom(8).hex()))
            except (TransportError, trio.TooSlowError):
                failed += 1

    found["together_cpu"] = {}
    found["together_seconds"] = {}
    for count in TOGETHER:
        more = count - len(held)

        async def open_more(more: int = more) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(more):
                    nursery.start_soon(open_one)

        began = time.perf_counter()
        found["together_cpu"][count] = await taken(ends, open_more, more)
        found["together_seconds"][count] = round(time.perf_counter() - began - IDLE - 1.0, 3)
    found["failed"] = failed

    async def open_back() -> None:
        async def one() -> None:
            async with limit:
                with trio.fail_after(WITHIN):
                    held.append(await ends.serving.connect(back.address, os.urandom(8).hex()))

        async with trio.open_nursery() as nursery:
            for _ in range(BACK):
                nursery.start_soon(one)

    found["back_cpu"] = await taken(ends, open_back, BACK)
    beside, held[-BACK:] = held[-BACK:], []
    for stream in held[:10]:
        await stream.send_all(b"x")  # they are open in fact
    found["frame_cpu"] = {}
    for size in SIZES:
        frames = FRAMES * SIZES[0] // size * 4 if size > SIZES[0] else FRAMES

        async def send(frames: int = frames, size: int = size) -> None:
            for number in range(frames):
                await held[number % len(held)].send_all(b"x" * size)
                if number % 20 == 19:
                    await trio.sleep(0.01)

        found["frame_cpu"][size] = await taken(ends, send, frames)
    found["held_idle_cpu"] = await idle(ends)
    for stream in held + beside:
        await trio.aclose_forcefully(stream)


async def measure(directory: Path, say: Callable[[str], None], distance: Distance = NEAR) -> dict[str, Any]:
    """Run a private Tor network with two client tors, and measure; at a distance delays alone."""
    found: dict[str, Any] = {}
    with trio.fail_after(READY_WITHIN):
        network = await private_tor.start(directory, clients=2, distance=distance)
    try:
        with trio.fail_after(READY_WITHIN):
            await private_tor.wait_ready(network)
        serving, connecting = network.clients
        pids = {process.name: process.pid for process in network.processes}
        async with over_tor(serving) as one, over_tor(connecting) as other, trio.open_nursery() as nursery:
            ends = Ends(one, other, (pids["tor client0"], pids["tor client1"]))
            say("services")
            listeners = await publish(ends, nursery, found)
            say("connections, one after the other")
            await alone(ends, listeners, found)
            if distance == NEAR:
                say("connections, many")
                back = await other.listen(Seed.draw(os.urandom))
                await back.published()
                nursery.start_soon(back.serve, echo)
                await together(ends, listeners[0], back, found)
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await processes.stop(network.processes)
    return found


def main() -> None:
    """Measure and write."""
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {what}", file=sys.stderr)

    file, *apart = sys.argv[1:]
    distance = Distance(int(apart[0])) if apart else NEAR
    with tempfile.TemporaryDirectory() as directory:
        found = trio.run(measure, Path(directory) / "tor", say, distance)
    for name in DELAYS:
        say(f"{name}: median {statistics.median(found[name])}")
    if apart:
        of_apart = {"ms": distance.ms, **{name: found[name] for name in DELAYS}}
        found = json.loads(Path(file).read_text()) | {"apart": of_apart}
    else:
        version = subprocess.run(["tor", "--version"], capture_output=True, text=True, check=True)  # noqa: S607
        found["tor"] = version.stdout.splitlines()[0]
    Path(file).write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
