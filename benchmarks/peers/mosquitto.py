"""mosquitto with a configuration of ours: one loopback listener, nothing kept, nothing dropped, no log."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.peers.installed import mosquitto
from benchmarks.peers.mqtt import Broker, broker
from benchmarks.processes import free_port

_CONFIG = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 0
max_queued_bytes 0
log_type none
{user}"""


def command(directory: Path, port: int) -> list[str]:
    """Return the command that runs it, its configuration written; raises `PeerMissing`."""
    # As root it would change to a user of its own, who cannot read our directory.
    user = "user root\n" if os.geteuid() == 0 else ""
    config = directory / "mosquitto.conf"
    config.write_text(_CONFIG.format(port=port, user=user))
    return [mosquitto(), "-c", str(config)]


def start(subscribers: int, directory: Path, qos: int = 0) -> AbstractAsyncContextManager[Broker]:
    """Return the context in which it runs; raises `PeerMissing`."""
    port = free_port()
    return broker(command(directory, port), port, subscribers, directory / "mosquitto.log", qos)
