"""A sensor of one house and a dashboard of another, by mosquitto's programs, over a private Tor network."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest
from client_kinds import KINDS, require
from mosquitto_client import MosquittoClient
from mqtt_client import Message
from sockets_seen import LOOPBACK, connections, look_at_sockets, socket_owners, unix_paths
from two_houses import House, houses

from hushcast_testnet import testnet

pytestmark = [pytest.mark.tor, pytest.mark.processes]

ARRIVES_WITHIN = 120.0  # seconds
READINGS = 10


def test_a_reading_reaches_the_other_house_and_no_socket_leads_elsewhere(
    tor_testnet: Any, capsys: Any
) -> None:
    require(KINDS[0])
    with houses(tor_testnet) as (sensors_house, dashboards_house):
        sensor = MosquittoClient(5, sensors_house.server, "sensor")
        dashboard = MosquittoClient(5, dashboards_house.server, "dashboard")
        dashboard.connect()
        try:
            assert dashboard.subscribe("hush/home/#", 1) == 1
            dashboards_house.subscriptions_ready(1)
            delays: list[float] = []
            strange: set[Any] = set()
            for number in range(READINGS):
                began = time.monotonic()
                sensor.publish("hush/home/kitchen/temp", str(number), 1)
                looks = [strange_sockets(tor_testnet, (sensors_house, dashboards_house)) for _ in range(2)]
                # What was opened or closed while the kernel's tables were read is not there any more.
                strange |= looks[0] & looks[1]
                came = dashboard.message(ARRIVES_WITHIN)
                delays.append(time.monotonic() - began)
                assert came == Message("hush/home/kitchen/temp", str(number), 1)
        finally:
            dashboard.close()
    assert not strange
    with capsys.disabled():
        middle, longest = statistics.median(delays), max(delays)
        print(f"\nover Tor, {READINGS} readings: median {middle:.2f} s, longest {longest:.2f} s")


def strange_sockets(net: Any, both: tuple[House, House]) -> set[Any]:
    """Return sockets that lead elsewhere: a daemon has its Tor, a gateway its clients and its daemon."""
    described = testnet.load(net.directory)
    tor_pids = {process.pid for process in described.tor.processes}
    doors = {int(door.split(":")[1]) for one in described.tor.clients for door in (one.control, one.socks)}
    pids = {house.member.daemon: net.pid(house.member.daemon) for house in both}
    connected, strange = look_at_sockets(pids, tor_pids, doors)
    assert connected, "they do have connections: the look sees them"
    found: set[Any] = set(strange)
    for house in both:
        pid, port = house.process.pid, (LOOPBACK, house.member.port)
        owned = socket_owners([pid])
        for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
            lines = connections(pid, kind)
            found |= {(kind, own, other) for own, other, inode, _ in lines if inode in owned and own != port}
        daemon = net.socket(house.member.daemon)
        listeners = {
            str(daemon),
            str(daemon.with_name("metrics.sock")),
        }  # the second where a test had it opened
        # A socket without a path is one end of a pair inside the process, or leads to the daemon's.
        found |= unix_paths(pid) - {"", house.member.socket}
        found |= unix_paths(pids[house.member.daemon]) - {"", *listeners}
    return found
