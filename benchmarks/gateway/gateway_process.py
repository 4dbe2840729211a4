"""Our gateway with a configuration of the harness: one loopback listener, local topics, no log."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.peers.mqtt import Broker, broker
from benchmarks.processes import free_port

_CONFIG = """\
program = "gateway"
state = "{state}"

[[listen]]
kind = "tcp"
address = "127.0.0.1"
port = {port}

[anonymous]
publish = ["#"]
subscribe = ["#"]

[log]
level = "error"
"""


def command(directory: Path, port: int, more: str = "") -> list[str]:
    """Return the command that runs it, its configuration written; `more` are further sections of that."""
    config = directory / "gateway.toml"
    config.write_text(_CONFIG.format(state=directory / "gateway", port=port) + more)
    return [sys.executable, "-m", "hushcast_gateway", str(config)]


def start(subscribers: int, directory: Path, qos: int = 0) -> AbstractAsyncContextManager[Broker]:
    """Return the context in which it runs."""
    port = free_port()
    return broker(command(directory, port), port, subscribers, directory / "gateway.log", qos)
