"""amqtt's broker, started in the peers' environment."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.peers.installed import python_with
from benchmarks.peers.mqtt import Broker, broker
from benchmarks.processes import free_port


def start(subscribers: int, directory: Path, qos: int = 0) -> AbstractAsyncContextManager[Broker]:
    """Return the context in which it runs; raises `PeerMissing`."""
    port = free_port()
    command = [python_with("amqtt"), "-m", "benchmarks.peers.amqtt_broker", str(port)]
    return broker(command, port, subscribers, directory / "amqtt.log", qos)
