"""A gateway at size, beside mosquitto: thousands of clients, of filters of one, of retained messages."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

import trio

from benchmarks.figures import Effort, Figure, PeerMissing, at_most, missing
from benchmarks.gateway import gateway_process
from benchmarks.peers import mosquitto
from benchmarks.peers.mqtt import Broker, connected, packet, text
from benchmarks.processes import connect, cpu_seconds, free_port, resident, running

CLIENTS, FILTERS, RETAINED = 10_000, 3_000, 100_000
MESSAGES = 20_000  # that pass among so many clients
AT_ONCE = 200  # clients that connect at once
IN_A_PACKET = 100  # filters of one SUBSCRIBE
IN_A_WRITE = 500  # retained messages that are published, and acknowledged, at once
OURS = "hushcast gateway"
_FILES = 2 * CLIENTS  # open files that each side may need
_LIMITS = f"""
[limits]
clients = {2 * CLIENTS}
retained = {2 * RETAINED}
retained_bytes = {2**30}
"""

Command = Callable[[Path, int], list[str]]


@dataclass
class Costs:
    """What a broker took; a list of one number for each QoS where it is one."""

    memory: float = 0.0
    """KiB a client."""
    connecting: float = 0.0
    """µs of CPU a client."""
    message: list[float] = field(default_factory=list)
    subscribing: float = 0.0
    """µs of CPU a filter."""
    retaining: float = 0.0
    """µs of CPU a message."""
    showing: float = 0.0
    """µs of CPU for each retained message that a new subscriber gets."""


def figures(effort: Effort) -> Iterator[Figure]:
    """Yield the figures."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < _FILES else _FILES, hard))
    clients, retained = effort.amount(CLIENTS), effort.amount(RETAINED)
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        ours = trio.run(_costs, _ours, Path(folder), clients, retained)
        try:
            peer = trio.run(_costs, mosquitto.command, Path(folder), clients, retained)
        except* PeerMissing as why:
            yield missing("gateway at size", None, "mosquitto", why.exceptions[0], None)
        else:
            yield from _compared(ours, peer, clients, retained)
    few, many = (trio.run(_start, count) for count in (retained // 10, retained))
    text = f"gateway at size: s of CPU to start with {retained:,} retained messages on disk: at most times"
    yield at_most(text, many, f"with {retained // 10:,}", few, 10.0)


def _compared(ours: Costs, peer: Costs, clients: int, retained: int) -> Iterator[Figure]:
    among = f"gateway at size, {clients:,} clients"
    lines: list[tuple[str, float, float, float | None]] = [
        (f"{among}: KiB of memory for each", ours.memory, peer.memory, None),
        (f"{among}: µs of CPU for each that connects", ours.connecting, peer.connecting, None),
        *(
            (f"{among}: µs of CPU a message 1→1, 1 KiB, QoS {qos}", one, other, 2.0)
            for qos, (one, other) in enumerate(zip(ours.message, peer.message, strict=True))
        ),
        (
            f"gateway, {FILTERS:,} filters of a client: µs of CPU for each",
            ours.subscribing,
            peer.subscribing,
            None,
        ),
        (f"gateway, {retained:,} retained: µs of CPU for each, QoS 1", ours.retaining, peer.retaining, None),
        (
            f"gateway, {retained:,} retained to a subscriber: µs of CPU for each",
            ours.showing,
            peer.showing,
            None,
        ),
    ]
    for figure, one, other, target in lines:
        yield at_most(f"{figure}: at most times", one, "mosquitto", other, target)


def _ours(directory: Path, port: int) -> list[str]:
    return gateway_process.command(directory, port, _LIMITS)


async def _costs(command: Command, folder: Path, clients: int, retained: int) -> Costs:
    costs, port, log = Costs(), free_port(), folder / "log"
    with running(command(folder, port), log) as process:
        first = await connected(port, b"first", process, log)
        before, began = resident(process.pid), cpu_seconds(process)
        crowd = await _crowd(port, process, log, clients)
        costs.connecting = (cpu_seconds(process) - began) / clients * 1e6
        costs.memory = (resident(process.pid) - before) / clients / 1024
        for qos in (0, 1):
            costs.message.append(await _message(port, process, log, qos))
        costs.subscribing = await _subscribing(first, process)
        for stream in crowd:
            await stream.aclose()
        costs.retaining = await _retaining(port, process, log, retained)
        costs.showing = await _showing(port, process, log, retained)
        await first.aclose()
    return costs


async def _crowd(port: int, process: Popen[bytes], log: Path, count: int) -> list[trio.SocketStream]:
    streams: list[trio.SocketStream] = []
    numbers = iter(range(count))

    async def come() -> None:
        for number in numbers:
            streams.append(await connected(port, b"crowd%d" % number, process, log))

    async with trio.open_nursery() as nursery:
        for _ in range(min(AT_ONCE, count)):
            nursery.start_soon(come)
    return streams


async def _message(port: int, process: Popen[bytes], log: Path, qos: int) -> float:
    between = Broker(1, process, qos)
    async with trio.open_nursery() as nursery:
        await between.join(1, port, log, nursery)
        await between.measure(MESSAGES // 10)
        await between.measure(MESSAGES)
        nursery.cancel_scope.cancel()
    return between.cpu


async def _subscribing(stream: trio.SocketStream, process: Popen[bytes]) -> float:
    began = cpu_seconds(process)
    for start in range(0, FILTERS, IN_A_PACKET):
        wanted = b"".join(text(b"home/%d/state" % (start + one)) + b"\x00" for one in range(IN_A_PACKET))
        await stream.send_all(packet(0x82, b"\x00\x01" + wanted))
        await _read(stream, 4 + IN_A_PACKET)  # type, length, identifier, and a byte for each
    return (cpu_seconds(process) - began) / FILTERS * 1e6


async def _retaining(port: int, process: Popen[bytes], log: Path, count: int) -> float:
    stream = await connected(port, b"retaining", process, log)
    began = cpu_seconds(process)
    for start in range(0, count, IN_A_WRITE):
        some = range(start, min(count, start + IN_A_WRITE))
        await stream.send_all(b"".join(_retained(number, 1) for number in some))
        await _read(stream, 4 * len(some))
    await stream.aclose()
    return (cpu_seconds(process) - began) / count * 1e6


async def _showing(port: int, process: Popen[bytes], log: Path, count: int) -> float:
    stream = await connected(port, b"showing", process, log)
    began = cpu_seconds(process)
    await stream.send_all(packet(0x82, b"\x00\x01" + text(b"retained/#") + b"\x00"))
    await _read(stream, 5 + sum(len(_retained(number, 0)) for number in range(count)))
    await stream.aclose()
    return (cpu_seconds(process) - began) / count * 1e6


async def _start(retained: int) -> float:
    """Return the seconds of CPU until a client is served, with so many retained messages on disk."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as directory:
        folder, port = Path(directory), free_port()
        command = _ours(folder, port)
        with running(command, folder / "log") as process:
            await (await connect(port, process, folder / "log")).aclose()
            await _retaining(port, process, folder / "log", retained)
        with running(command, folder / "log") as process:
            await (await connected(port, b"again", process, folder / "log")).aclose()
            return cpu_seconds(process)


def _retained(number: int, qos: int) -> bytes:
    topic = text(b"retained/room%d/device%d" % divmod(number, 100))
    between = (1 + number % 65_535).to_bytes(2, "big") if qos else b""
    return packet(0x31 | qos << 1, topic + between + b"x" * 100)


async def _read(stream: trio.SocketStream, size: int) -> None:
    while size > 0:
        data = await stream.receive_some(min(size, 65_536))
        if not data:
            raise PeerMissing("it closes the connection")
        size -= len(data)
