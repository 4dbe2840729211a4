"""A real private Tor network whose tors are apart: it comes up, and whatever travels takes what was asked."""

from __future__ import annotations

import os
import ssl
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio
from sockets_seen import LOOPBACK, connections, socket_owners

from benchmarks.figures import Effort
from benchmarks.tor.distance import measure, table
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_testnet import testnet
from hushcast_testnet.tor.distance import Distance
from hushcast_testnet.tor.distance_proxy import DOORS_FILE, DistanceOrder
from hushcast_testnet.tor.private_tor import TorNetwork, proxy_of

pytestmark = [pytest.mark.tor, pytest.mark.processes]

ASKED = Distance(30, seed=5)
WITHIN = 120.0  # seconds for anything over Tor, on a busy machine
HANDSHAKES, CIRCUITS, PINGS = 20, 4, 5
BUSY = 0.15  # seconds that other work on the machine may add to a round trip, in the median
HOPS = 7  # connections between the ends of an onion connection: three to the meeting point, four from it


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("far") / "net"
    testnet.up(directory, 2, 1, "tor", 60, distance=ASKED)
    try:
        yield directory
    finally:
        testnet.down(directory)
    assert testnet.status(directory)["distance"]["pid"] is None
    assert proxy_of(directory / "tor") is None


def order(directory: Path) -> DistanceOrder:
    file = directory / "tor" / "distance" / DOORS_FILE
    return msgspec.json.decode(file.read_bytes(), type=DistanceOrder)


def test_status_tells_of_it(far: Path) -> None:
    status = testnet.status(far)
    assert status["ready"]
    assert status["distance"] == {"ms": ASKED.ms, "seed": ASKED.seed, "pid": proxy_of(far / "tor")}
    assert status["distance"]["pid"] is not None
    command = [sys.executable, "-m", "hushcast_cli.start", "testnet", "status", "--dir", str(far)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"30 ms one way, drawn by seed 5; proxy pid {proxy_of(far / 'tor')}" in told


def test_no_tor_reaches_another_but_through_the_proxy(far: Path) -> None:
    net = testnet.load(far)
    assert net.tor is not None
    proxy = proxy_of(far / "tor")
    assert proxy is not None
    owners = socket_owners([process.pid for process in net.tor.processes])
    listening = {(LOOPBACK, door.own_port): door.name for door in order(far).doors}
    table = [line for line in connections(proxy, "tcp") if not line[3]]
    to_tors = [(owners.get(inode), listening[remote]) for _, remote, inode, _ in table if remote in listening]
    assert len(to_tors) > len(listening)
    assert {owner for owner, _ in to_tors if owner} == {proxy}


async def test_a_round_trip_takes_what_was_asked(far: Path) -> None:
    """TLS asks and answers once, behind TCP, which does so, too."""
    (door,) = [door for door in order(far).doors if door.name == "relay0 ORPort"]
    trips = statistics.median([await handshake(door.host, door.port) for _ in range(HANDSHAKES)]) / 2
    drawn = [ASKED.draw(door.name, number).round_trip for number in range(200)]
    assert 0.65 * statistics.median(drawn) < trips < 1.5 * statistics.median(drawn) + BUSY


async def test_what_is_measured_of_it_stands_beside_a_first_contact(far: Path) -> None:
    """The figures of `benchmarks/tor/distance.py`, of a hundredth of the work: that they can be had."""
    times = await measure(far, Effort(1, 0.01))
    lines = list(table(times, "apart"))
    assert len(lines) == 5
    assert all(line.ours > 0 and line.peer_value > 0 for line in lines)


async def handshake(host: str, port: int) -> float:
    """Return the seconds until a tor has shown its certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    began = trio.current_time()
    stream = trio.SSLStream(await trio.open_tcp_stream(host, port), context)
    with trio.fail_after(WITHIN):
        await stream.do_handshake()
    took = trio.current_time() - began
    await trio.aclose_forcefully(stream)
    return took


async def test_an_onion_connection_takes_it_at_each_hop(far: Path, tor_network: TorNetwork) -> None:
    net = testnet.load(far)
    assert net.tor is not None
    there, here = await pinged(net.tor), await pinged(tor_network)
    asked = HOPS * 2 * ASKED.ms / 1000
    assert 0.5 * asked < there - here < 1.7 * asked + BUSY


async def pinged(network: TorNetwork) -> float:
    """Return the seconds in which an onion connection's far end answers, in the median over circuits."""
    control, socks = network.clients[0].endpoints()
    transport = TorTransport(TorSettings(control=control, socks=socks))
    taken = []
    with trio.fail_after(WITHIN):
        async with trio.open_nursery() as nursery:
            await nursery.start(transport.run)
            listener = await transport.listen(Seed.draw(os.urandom))
            nursery.start_soon(listener.serve, echo)
            await listener.published()
            for _ in range(CIRCUITS):
                async with await transport.connect(listener.address, os.urandom(8).hex()) as stream:
                    for _ in range(PINGS):
                        began = trio.current_time()
                        await stream.send_all(b"x")
                        await stream.receive_some()
                        taken.append(trio.current_time() - began)
            nursery.cancel_scope.cancel()
    return statistics.median(taken)


async def echo(stream: trio.abc.Stream) -> None:
    while data := await stream.receive_some():
        await stream.send_all(data)
