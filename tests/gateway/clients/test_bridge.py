"""mosquitto's bridge: a broker that was there before, joined to a gateway, which is killed on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, wait_for
from mqtt_client import WITHIN, Message, Server
from paho_client import PahoClient
from ports import free_port

pytestmark = pytest.mark.processes

CONFIG = """\
listener {port} 127.0.0.1
allow_anonymous true
connection gateway
address 127.0.0.1:{gateway}
topic rooms/# out 1
topic orders/# in 1
topic both/# both 2 here/ there/
cleansession false
restart_timeout 1
bridge_protocol_version {version}
"""


@contextmanager
def bridge(directory: Path, gateway: Server, version: str) -> Iterator[Server]:
    """Run mosquitto with a bridge to a gateway."""
    path = f"{os.environ['PATH']}:/usr/sbin"  # Debian has it there, which is not everybody's
    if (mosquitto := shutil.which("mosquitto", path=path)) is None:
        pytest.skip("NOT TESTED: mosquitto is missing: `tools/require-mqtt-clients` says why")
    server, file = Server(free_port()), directory / "mosquitto.conf"
    file.write_text(CONFIG.format(port=server.port, gateway=gateway.port, version=version))
    with (directory / "mosquitto.log").open("wb") as log:
        process = subprocess.Popen([mosquitto, "-c", str(file)], stdout=log, stderr=log)
    try:
        wait_for(server.port)
        yield server
    finally:
        process.terminate()
        process.wait(WITHIN)


@pytest.mark.parametrize("version", ["mqttv311", "mqttv50"])
def test_topics_go_both_ways_and_wait_while_the_gateway_is_killed(tmp_path: Path, version: str) -> None:
    gateway = GatewayProcess(tmp_path)
    gateway.start()
    with bridge(tmp_path, gateway.server, version) as mosquitto:
        try:
            house, other = (PahoClient(4, server, "client") for server in (mosquitto, gateway.server))
            house.connect()
            for wanted in ("orders/#", "here/both/#"):
                house.subscribe(wanted, 2)
            other.connect()
            for wanted in ("rooms/#", "there/both/#"):
                other.subscribe(wanted, 2)
            house.publish("rooms/kitchen/temp", "21", 1)
            assert other.message() == Message("rooms/kitchen/temp", "21", 1)
            other.publish("orders/lamp", "on", 1)
            assert house.message() == Message("orders/lamp", "on", 1)
            house.publish("here/both/a", "out", 2)
            assert other.message() == Message("there/both/a", "out", 2)
            # Its own; in 3.1.1 once more, from the gateway, where in 5 the bridge asks for No Local.
            for _ in range(2 if version == "mqttv311" else 1):
                assert house.message() == Message("here/both/a", "out", 2)
            other.publish("there/both/b", "in", 2)
            assert other.message() == Message("there/both/b", "in", 2), (
                "what it published, and no more of the other"
            )
            assert house.message() == Message("here/both/b", "in", 2)
            other.die()
            gateway.kill()
            house.publish("rooms/kitchen/temp", "22", 1)
            gateway.start()
            back = PahoClient(4, gateway.server, "client")
            back.connect()
            back.subscribe("rooms/#", 1)
            assert back.message() == Message("rooms/kitchen/temp", "22", 1), "when the bridge is back"
            back.publish("orders/lamp", "off", 1)
            assert house.message() == Message("orders/lamp", "off", 1)
            back.close()
            house.close()
        finally:
            gateway.kill()
