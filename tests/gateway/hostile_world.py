"""A gateway process, fifty honest clients and hostile ones beside them: what each of them comes to."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import trio
from ports import free_port
from steps import BUDGET

from hushcast_gateway.passwords import hashed
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import V5, Connect, PubAck, Publish, RequestedSubscription, Subscribe

HONEST = 50
EVERY = 1.0  # seconds between two messages of an honest client
WITHIN = 30.0  # seconds for what takes a moment, on a machine with other work
MEMORY = 700_000_000  # bytes; 304 MB were seen, 128 of them for two passwords that are compared
SECONDS = float(os.environ.get("HOSTILE_SECONDS", "0"))  # of each attack, in the run by hand


class GatewayUnderAttack:
    """A gateway process that lets everybody of this machine in, and alice by her password."""

    def __init__(self, directory: Path, more: str = "") -> None:
        """`more` stands behind the rest of its configuration."""
        self.port, self.websocket, self.http = free_port(), free_port(), free_port()
        self.log, self.metrics = directory / "log", directory / "metrics"
        config = directory / "g.toml"
        config.write_text(
            f'state = "{directory}/state"\nmetrics = "unix:{self.metrics}"\n'
            f'[anonymous]\npublish = ["#"]\nsubscribe = ["#", "$SYS/#"]\n'
            f'[users.alice]\npassword = "{hashed(b"right")}"\nsubscribe = ["#"]\npublish = ["#"]\n'
            f'[[listen]]\nkind = "tcp"\nport = {self.port}\n'
            f'[[listen]]\nkind = "ws"\nport = {self.websocket}\n'
            f'[[listen]]\nkind = "http"\nport = {self.http}\n[history]\ntopics = ["kept/#"]\n{more}'
        )
        command = [sys.executable, "-m", "hushcast_cli.start", "run", "gateway", "--config", str(config)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log)
        until = time.monotonic() + WITHIN
        while "running" not in self.log.read_text():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    @property
    def files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    @property
    def memory(self) -> int:
        """Bytes that are resident."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    async def longest_step(self) -> float:
        """Return the seconds of a processor that its longest step took since the last call."""
        async with await trio.open_unix_socket(self.metrics) as stream:
            await stream.send_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            answer = b"".join([bytes(part) async for part in stream]).decode()
        return float(answer.rpartition("\nhushcast_longest_step_seconds ")[2].split()[0])


async def moment(condition: Callable[[], bool]) -> None:
    """Wait for what another process brings about, for a while."""
    for _ in range(int(WITHIN / 0.05)):
        if condition():
            return
        await trio.sleep(0.05)


class Honest:
    """A client that gets its own messages back, once a second, and never loses its connection."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.delays: list[float] = []
        self.sent: dict[bytes, float] = {}
        self.unacknowledged: set[int] = set()
        self.is_publishing = True
        self.has_begun = trio.Event()

    async def run(self, port: int) -> None:
        """Publish and read until cancelled; an end of the connection is an error."""
        decoder = Decoder(2**28, of_server=True)
        decoder.version = V5
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as nursery:
            sending = trio.Lock()

            async def send(*packets: Connect | Subscribe | Publish | PubAck) -> None:
                async with sending:
                    await stream.send_all(b"".join(encode(packet, V5) for packet in packets))

            async def publish() -> None:
                for number in range(1, 60_000):
                    if self.is_publishing:
                        payload = b"%d" % number
                        self.unacknowledged.add(number)
                        self.sent[payload] = trio.current_time()
                        await send(Publish(self.name, payload, 1, packet_id=number))
                    await trio.sleep(EVERY)

            await send(
                Connect(V5, self.name, keep_alive=60), Subscribe(1, [RequestedSubscription(self.name, 1)])
            )
            while True:
                data = await stream.receive_some(65_536)
                assert data, "an honest client was disconnected"
                for packet in decoder.feed(bytes(data)):
                    if isinstance(packet, Publish):
                        self.delays.append(trio.current_time() - self.sent.pop(packet.payload))
                        await send(PubAck(packet.packet_id))
                    elif isinstance(packet, PubAck):
                        assert packet.reason == 0
                        self.unacknowledged.remove(packet.packet_id)
                if not self.has_begun.is_set():
                    self.has_begun.set()
                    nursery.start_soon(publish)


class HonestClient(Protocol):
    """What a crowd knows of each."""

    delays: list[float]
    sent: dict[bytes, float]
    unacknowledged: set[int]
    is_publishing: bool
    has_begun: trio.Event


class Crowd:
    """All honest clients."""

    def __init__(self, clients: list[HonestClient]) -> None:
        self.clients = clients

    def delays(self) -> list[float]:
        """Return the seconds of each delivery since the last call, sorted."""
        found = sorted(delay for client in self.clients for delay in client.delays)
        for client in self.clients:
            client.delays.clear()
        return found

    def waiting(self) -> int:
        """Return how many messages did not come back or were not acknowledged."""
        return sum(len(client.sent) + len(client.unacknowledged) for client in self.clients)

    async def settle(self) -> None:
        """Let all that is under way arrive."""
        for client in self.clients:
            client.is_publishing = False
        await moment(lambda: self.waiting() == 0)
        assert self.waiting() == 0, "messages of honest clients were lost"


async def attacked(
    gateway: GatewayUnderAttack, crowd: Crowd, names: list[str], seconds: float, file: str = "attacks.py"
) -> int:
    """Let a process attack; return the most memory that the gateway took, and print what it came to."""
    before = most = gateway.memory
    crowd.delays()
    script, ports = Path(__file__).with_name(file), (gateway.port, gateway.websocket, gateway.http)
    command = [sys.executable, str(script), str(seconds), *map(str, ports), *names]
    process = await trio.lowlevel.open_process(command) if names else None
    with trio.move_on_after(seconds + WITHIN if process else seconds):
        while process is None or process.poll() is None:
            most = max(most, gateway.memory)
            await trio.sleep(0.1)
    if process is not None:
        assert process.returncode == 0
    delays = crowd.delays()
    half, most_of = delays[len(delays) // 2] * 1e3, delays[len(delays) * 99 // 100] * 1e3
    told = ", ".join(names) if len(names) < 3 else "all at once"
    longest = await gateway.longest_step()
    assert longest < BUDGET, f"{told}: a step took {longest * 1e3:.0f} ms\n{gateway.log.read_text()}"
    print(
        f"{told or 'none':18} longest step {longest * 1e3:3.0f} ms, "
        f"{len(delays):6} delivered, p50 {half:6.1f} ms, p99 {most_of:7.1f} ms, "
        f"MB {before / 1e6:5.0f} {most / 1e6:5.0f} {gateway.memory / 1e6:5.0f}"
    )
    return most
