"""The demonstration of the gateways: a sensor in one house, a dashboard in another, Tor between them."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import trio

import hushcast
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_runtime.wording import counted
from hushcast_testnet import testnet
from hushcast_testnet.demonstrations.course import Progress, Tell, far
from hushcast_testnet.gateways import ALIAS
from hushcast_testnet.inventory import FILE, GatewayMember, deadline, load
from hushcast_testnet.mqtt_client import MqttClient, connected_to
from hushcast_testnet.signals import until_signalled
from hushcast_testnet.tor.distance import NEAR, Distance

NODES, READINGS = 6, 10
BETWEEN = 0.5  # seconds from one reading to the next
ROUTED_WITHIN = 120.0  # seconds until relays route to the dashboard's house
ARRIVE_WITHIN = 60.0  # seconds after the last reading
TOPIC = f"{ALIAS}/kitchen/temp"


def demo(progress: Progress, tell: Tell, distance: Distance = NEAR) -> dict[str, Any]:
    """Run the demonstration and leave nothing running; return its figures.

    At a `distance` connections between tors take that long.

    Raises a `HushcastError` if the network does not come up; whether anything was lost is in the figures.
    """
    with tempfile.TemporaryDirectory(prefix="hushcast-demo-") as folder:
        directory = Path(folder) / "testnet"
        try:
            testnet.up(directory, NODES, 2, "tor", progress=progress, with_gateways=True, distance=distance)
            delays = trio.run(until_signalled, _converse, directory, progress, tell)
        finally:
            if (directory / FILE).exists():
                testnet.down(directory, progress)
    came = [delay for delay in delays if delay is not None]
    tell(f"{len(came)} of {counted(len(delays), 'reading')} came.")
    return {
        "transport": "tor",
        "distance": distance.ms,
        "nodes": NODES,
        "published": len(delays),
        "delivered": len(came),
        "lost": len(delays) - len(came),
        "seconds": {"deliver_p50": round(statistics.median(came), 3) if came else None},
    }


async def _converse(directory: Path, progress: Progress, tell: Tell) -> list[float | None]:
    loaded = load(directory)
    sensors_house, dashboards_house = loaded.gateways
    between = f"{NODES} relays between them, over Tor{far(loaded.distance)}"
    tell(f"Two houses, each with a daemon and an MQTT gateway, and {between}.")
    async with (
        connected_to(Endpoint(LOOPBACK, dashboards_house.port)) as dashboard,
        connected_to(Endpoint(LOOPBACK, sensors_house.port)) as sensor,
    ):
        await dashboard.subscribe(f"{ALIAS}/#")
        tell(f"In one house a dashboard subscribes to {ALIAS}/#.")
        progress("waiting until relays route to its daemon")
        await _routed(directory, dashboards_house)
        tell(f"In the other a sensor publishes {TOPIC}:")
        tell("")
        return await _measure(sensor, dashboard, tell)


async def _routed(directory: Path, gateway: GatewayMember) -> None:
    (member,) = [one for one in load(directory).members if one.name == gateway.daemon]
    with deadline(ROUTED_WITHIN, "the subscription was not installed in time"):
        async with hushcast.connect(member.socket) as daemon:
            while not [held for held in await daemon.subscriptions() if held.is_ready]:  # noqa: ASYNC110
                await trio.sleep(0.2)


async def _measure(sensor: MqttClient, dashboard: MqttClient, tell: Tell) -> list[float | None]:
    began: dict[bytes, float] = {}
    came: dict[bytes, float] = {}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, dashboard, began, came, tell)
        for number in range(READINGS):
            reading = f"{20 + number / 10:.1f}".encode()
            began[reading] = time.monotonic()
            await sensor.publish(TOPIC, reading)
            await trio.sleep(BETWEEN)
        with trio.move_on_after(ARRIVE_WITHIN):
            while len(came) < READINGS:  # noqa: ASYNC110 - two tasks of one demonstration
                await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
    return [came[reading] - moment if reading in came else None for reading, moment in began.items()]


async def _watch(
    dashboard: MqttClient, began: dict[bytes, float], came: dict[bytes, float], tell: Tell
) -> None:
    while True:
        message = await dashboard.message()
        if message.payload in began and message.payload not in came:
            came[message.payload] = time.monotonic()
            after = came[message.payload] - began[message.payload]
            tell(f"  {message.topic} {message.payload.decode():<6} → after {after:.2f} s")
