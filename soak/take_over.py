"""Take-over: two gateways with one state; the one that serves is killed again and again, under traffic.

Clients are paho's. What a publisher was told is kept must come to those who are subscribed, and what went out
at QoS 2 and was wanted at QoS 2 must come once.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTProtocolVersion

from hushcast_runtime.storage.state_lock import holder
from soak.paho_clients import WITHIN, connected, wait_until

RETAINED = 5_000  # messages that are retained when it begins: each start reads them
RATE = 200  # messages a second of each publisher at most
WINDOW = 10  # messages of a publisher without an answer: after a reconnect paho sends all of them at once
PAUSE = (0.5, 2.5)  # seconds between two kills, drawn
_CONNECT = (
    b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x00\x00\x02"  # 3.1.1, clean, with a client identifier of two bytes
)
_CONFIG = """\
program = "gateway"
state = "{state}"
standby = true

[[listen]]
kind = "tcp"
port = {port}

[anonymous]
publish = ["#"]
subscribe = ["#"]
"""


class Pair:
    """Two gateway processes with one configuration: one serves, the other stands by."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.state, self._log = directory / "state", directory / "log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.config = directory / "gateway.toml"
        self.config.write_text(_CONFIG.format(state=self.state, port=self.port))
        self._log.touch()
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, told: str) -> None:
        """Start one more, and return when it has logged what it does."""
        before = self.count(told)
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_gateway", str(self.config)]
            self.processes.append(subprocess.Popen(command, stderr=log, stdout=log))  # noqa: S603
        wait_until(lambda: self.count(told) > before, told)

    def kill(self) -> float:
        """Kill the one that serves; return the seconds until a client is served by the other."""
        serving = next(one for one in self.processes if one.pid == holder(self.state))
        if self.count("taking over") != self.count("Killed"):
            raise AssertionError("a gateway took over from one that serves")
        began = time.monotonic()
        serving.kill()
        serving.wait()
        self.processes.remove(serving)
        with self._log.open("a") as log:
            log.write("Killed\n")
        wait_until(self._serves, "a client is served")
        return time.monotonic() - began

    def count(self, told: str) -> int:
        """Return how often something is in their log."""
        return self._log.read_text().count(told)

    def stop(self) -> None:
        """End both."""
        for one in self.processes:
            one.kill()
            one.wait()

    def _serves(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), WITHIN) as client:
                client.sendall(_CONNECT + b"%02d" % random.randrange(100))  # noqa: S311
                return client.recv(4)[:1] == b"\x20"
        except OSError:
            return False


@dataclass
class Reader:
    """A subscriber with a session that lasts, and what came to it."""

    client: paho.Client
    qos: int
    came: Counter[bytes] = field(default_factory=Counter)


class Publisher:
    """A client that publishes numbers, and notes which of them were acknowledged."""

    def __init__(self, client: paho.Client, name: bytes, qos: int) -> None:
        """Of less than 65,535 messages none shares its packet identifier with another."""
        self._client, self._name, self._qos = client, name, qos
        self._published: dict[int, bytes] = {}
        self._told: list[int] = []  # acknowledged packet identifiers
        self._stops = threading.Event()
        client.on_publish = self._on_publish
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    @property
    def acknowledged(self) -> set[bytes]:
        """What was acknowledged."""
        return {self._published[one] for one in self._told}

    def stop(self) -> None:
        """Publish no more, and wait until everything is acknowledged."""
        self._stops.set()
        self._thread.join()
        wait_until(lambda: len(self._told) >= len(self._published), "everything is acknowledged")

    def _publish(self) -> None:
        while not self._stops.wait(1 / RATE):
            if len(self._published) - len(self._told) >= WINDOW:
                continue
            payload = b"%d %s %d" % (self._qos, self._name, len(self._published))
            told = self._client.publish(f"counted/{self._qos}", payload, self._qos)
            self._published[told.mid] = payload

    def _on_publish(self, client: paho.Client, data: Any, mid: int, code: Any, properties: Any) -> None:
        if not code.is_failure:
            self._told.append(mid)


def watch_take_overs(
    directory: Path, kills: int, seed: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Kill so many gateways, each while another stands by, under traffic of QoS 1 and 2; return figures.

    `ok` tells whether nothing acknowledged was lost and nothing of QoS 2 doubled. Raises `AssertionError`
    where two serve at once, or none does within `WITHIN`.
    """
    chance = random.Random(seed)  # noqa: S311
    pair = Pair(directory)
    seconds: list[float] = []
    with ExitStack() as stack:
        stack.callback(pair.stop)
        pair.start("running")
        _retain(pair.port)
        readers = [stack.enter_context(_reader(pair.port, qos, version)) for qos, version in _CLIENTS]
        publishers = [stack.enter_context(_publisher(pair.port, qos, version)) for qos, version in _CLIENTS]
        for number in range(kills):
            pair.start("standing by")
            time.sleep(chance.uniform(*PAUSE))
            seconds.append(pair.kill())
            progress(f"killed {number + 1}: {seconds[-1]:.2f} s")
        for publisher in publishers:
            publisher.stop()
        wanted = set[bytes]().union(*(one.acknowledged for one in publishers))
        lost = [_missing(one, wanted) for one in readers]
    doubled = sum(
        count - 1
        for reader in readers
        if reader.qos == 2
        for one, count in reader.came.items()
        if one[:1] == b"2"
    )
    return {
        "ok": not any(lost) and not doubled,
        "kills": kills,
        "acknowledged": len(wanted),
        "lost": sum(lost),
        "doubled": doubled,
        "again_at_qos_1": sum(sum(one.came.values()) - len(one.came) for one in readers) - doubled,
        "seconds": [round(one, 2) for one in seconds],
    }


_CLIENTS = [(qos, version) for qos in (1, 2) for version in (paho.MQTTv311, paho.MQTTv5)]


def _missing(reader: Reader, wanted: set[bytes]) -> int:
    """Return how much of what was acknowledged does not come to a reader."""
    until = time.monotonic() + WITHIN
    while (missing := len(wanted - reader.came.keys())) and time.monotonic() < until:
        time.sleep(0.05)
    return missing


@contextmanager
def _reader(port: int, qos: int, version: MQTTProtocolVersion) -> Iterator[Reader]:
    with connected(port, f"reader-{qos}-{version}", version) as client:
        reader = Reader(client, qos)
        granted = threading.Event()

        def came(client: paho.Client, data: Any, message: paho.MQTTMessage) -> None:
            reader.came[bytes(message.payload)] += 1

        client.on_message = came
        client.on_subscribe = lambda *_: granted.set()
        client.subscribe("counted/#", qos)
        if not granted.wait(WITHIN):
            raise AssertionError("no subscription was granted")
        yield reader


@contextmanager
def _publisher(port: int, qos: int, version: MQTTProtocolVersion) -> Iterator[Publisher]:
    name = f"publisher-{qos}-{version}"
    with connected(port, name, version) as client:
        yield Publisher(client, name.encode(), qos)


def _retain(port: int) -> None:
    with connected(port, "retainer", paho.MQTTv311) as client:
        for number in range(RETAINED):
            told = client.publish(f"retained/{number}", b"x" * 100, 1, retain=True)
        told.wait_for_publish(WITHIN)
