"""Testnets in containers: who can reach whom, one message end to end, a partition that heals."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

import hushcast
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.local_sockets import MAX_PATH
from hushcast_testnet import inventory, testnet
from hushcast_testnet.chaos.container_breaker import container_breaker
from hushcast_testnet.chaos.fault_plan import KINDS, Fault
from hushcast_testnet.containers.compose import (
    ComposeFrame,
    Containers,
    DaemonContainer,
    TorContainer,
    compose,
)
from hushcast_testnet.containers.container_backend import ContainerBackend
from hushcast_testnet.containers.engine import Engine, find_engine
from hushcast_testnet.inventory import Transport
from hushcast_testnet.layouts import OverlayLayout
from hushcast_testnet.testnet import BackendName
from hushcast_testnet.tor.distance import Distance

WITHIN = 240.0  # seconds for anything between daemons, on a busy machine


def seen(*paths: str) -> dict[Path, Path]:
    return {Path(path): Path(path) for path in paths}


def composed() -> dict:
    containers = Containers(
        Engine("docker"), "p", "/t/compose.yaml", {"authority0": "10.1.2.10", "r-tor": "10.1.2.11"}
    )
    tors = [
        TorContainer("authority0", Path("/t/tor/authority0/torrc"), seen("/t/tor/authority0")),
        TorContainer(
            "r-tor",
            Path("/t/r/r-tor/torrc"),
            seen("/t/r/r-tor") | {Path("/t/r/tor-doors"): Path("/t/r/doors")},
        ),
    ]
    daemons = [DaemonContainer("r", ("hushcast_node",), Path("/t/r/config.toml"), seen("/t/r", "/t/traces"))]
    return json.loads(compose(ComposeFrame(containers, "image", "7:8"), "10.1.2.0/24", tors, daemons))


def test_a_daemon_has_no_network_and_a_tor_no_way_out() -> None:
    made = composed()
    assert made["services"]["r"]["network_mode"] == "none"
    assert "networks" not in made["services"]["r"]
    assert made["networks"]["tor"]["internal"] is True
    assert made["services"]["authority0"]["networks"] == {"tor": {"ipv4_address": "10.1.2.10"}}


def test_a_proxy_between_the_tors_is_where_they_are() -> None:
    containers = Containers(Engine("docker"), "p", "/t/compose.yaml", {"distance": "10.1.2.10"})
    proxy = DaemonContainer(
        "distance", ("proxy",), Path("/t/tor/distance/doors.json"), seen("/t/tor/distance")
    )
    made = json.loads(compose(ComposeFrame(containers, "image", "7:8"), "10.1.2.0/24", [], [proxy]))
    service = made["services"]["distance"]
    assert service["networks"] == {"tor": {"ipv4_address": "10.1.2.10"}}
    assert not {"network_mode", "healthcheck"} & service.keys()
    assert service["volumes"] == ["/t/tor/distance:/t/tor/distance"]


def test_containers_have_no_rights_and_see_what_is_theirs() -> None:
    for name, service in composed()["services"].items():
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        assert service["security_opt"] == ["no-new-privileges"]
        assert service["user"] == "7:8"
        assert "ports" not in service
        assert "privileged" not in service
        assert service["container_name"] == f"p-{name}"
    assert composed()["services"]["r"]["volumes"] == ["/t/r:/t/r", "/t/traces:/t/traces"]
    assert composed()["services"]["r-tor"]["volumes"] == [
        "/t/r/r-tor:/t/r/r-tor",
        "/t/r/tor-doors:/t/r/doors",
    ]


def test_an_engine_hears_whether_a_daemon_is_ready() -> None:
    services = composed()["services"]
    words = services["r"]["healthcheck"]["test"]
    assert words[0] == "CMD"
    assert words[-3:] == ["healthcheck", "--config", "/t/r/config.toml"]
    assert "healthcheck" not in services["r-tor"]


def test_containers_want_tor_and_no_more_daemons_than_their_network_has_room_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tor"):
        testnet.up(tmp_path / "net", 1, 0, "tcp", backend="containers")

    async def prepare() -> None:
        many = OverlayLayout(300, 0).members(tmp_path)
        await ContainerBackend(tmp_path, breakable=False).prepare(
            inventory.Testnet("tor", 30, 0.0, [], None), many, lambda **changes: None, lambda text: None
        )

    with pytest.raises(UsageError, match="200"):
        trio.run(prepare)


@pytest.mark.parametrize(("transport", "backend"), [("tcp", "processes"), ("tor", "containers")])
def test_a_directory_too_deep_for_sockets_is_refused_before_anything_starts(
    transport: Transport, backend: BackendName, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * (MAX_PATH - len(bytes(tmp_path)) - len("/directory/state/doctor.sock")))
    with pytest.raises(UsageError, match="1 byte too long" if backend == "processes" else "too long"):
        testnet.up(deep, 1, 0, transport, backend=backend)
    assert list(deep.iterdir()) == []


def test_a_directory_too_deep_for_a_proxys_socket_is_refused_before_anything_starts() -> None:
    socket = "/proxies/publications-1/state/doctor.sock"
    with tempfile.TemporaryDirectory() as short:  # pytest's own path may leave no room
        deep = Path(short) / ("d" * (MAX_PATH - len(short) - len(socket)))
        with pytest.raises(UsageError, match="1 byte too long"):
            testnet.up(deep, 1, None, "tcp", carrier="central")
        assert list(deep.iterdir()) == []


@pytest.fixture
def containers() -> Iterator[Path]:
    try:
        engine = trio.run(find_engine)
    except UsageError as error:
        pytest.skip(f"NO CONTAINERS HERE, NOT TESTED: {error}")
    # The path of pytest's own directory is near the length that sockets allow.
    with tempfile.TemporaryDirectory(prefix="hushcast-containers-") as directory:
        yield from _testnet(Path(directory) / "net", engine)


def _testnet(directory: Path, engine: Engine) -> Iterator[Path]:
    testnet.up(directory, 4, 2, "tor", 30, breakable=True, backend="containers", distance=Distance(10))
    made = testnet.load(directory).containers
    assert made is not None
    try:
        yield directory
    finally:
        testnet.down(directory)
    left = trio.run(engine.run, "ps", "--all", "--filter", f"name={made.project}", "--format", "{{.Names}}")
    assert left.split() == []
    assert testnet.status(directory)["distance"]["pid"] is None
    assert made.network not in trio.run(engine.run, "network", "ls", "--format", "{{.Name}}").split()


@pytest.mark.tor
@pytest.mark.processes
@pytest.mark.containers
async def test_six_daemons_a_message_and_a_partition_that_heals(containers: Path) -> None:
    net = testnet.load(containers)
    assert net.containers is not None
    sockets = {member.name: Path(member.socket or "") for member in net.members}
    with trio.fail_after(WITHIN):
        async with hushcast.connect(sockets["client-1"]) as daemon, daemon.subscribe("t") as listening:
            first = await publish(sockets["client-2"], "before")
            await arrive(listening, {first})
            await nothing_is_reached_by(net.containers, "client-1")
            breaker = await container_breaker(net)
            assert set(breaker.kinds) == set(KINDS)
            await breaker.begin(Fault("cut", "client-1", 0, 1))
            with pytest.raises(TransportError):  # its tor has no network either
                await connect(net.containers, "client-1-tor")
            while_cut = {await publish(sockets["client-2"], str(number)) for number in range(3)}
            await breaker.end(Fault("cut", "client-1", 0, 1))
            await connect(net.containers, "client-1-tor")
            await arrive(listening, while_cut)
            await breaker.begin(Fault("delay", "client-1", 0, 1, amount=0.5))
            began = trio.current_time()
            await arrive(listening, {await publish(sockets["client-2"], "late")})
            assert trio.current_time() - began > 0.5
            await breaker.end(Fault("delay", "client-1", 0, 1))
    status = await trio.to_thread.run_sync(testnet.status, containers)
    assert status["ready"] is True
    assert status["distance"]["ms"] == 10
    assert status["distance"]["pid"]
    assert all(node["pid"] for node in status["nodes"])


async def publish(socket: Path, text: str) -> str:
    async with hushcast.connect(socket) as daemon:
        return (await daemon.publish("t", text)).id


async def arrive(listening: hushcast.Messages, ids: set[str]) -> None:
    shown: list[str] = []
    while set(shown) != ids:
        shown.append((await anext(listening)).id)
    assert len(shown) == len(ids)


async def connect(containers: Containers, service: str) -> None:
    """Connect from a container to a tor of another; raise `TransportError` if that cannot be."""
    address = (containers.addresses["authority0"], 9001)
    script = f"import socket; socket.create_connection({address!r}, 5)"
    await containers.engine.run("exec", containers.name(service), "python3", "-c", script)


async def nothing_is_reached_by(containers: Containers, service: str) -> None:
    devices = await containers.engine.run("exec", containers.name(service), "ls", "/sys/class/net")
    assert devices.split() == ["lo"]
    with pytest.raises(TransportError, match="unreachable"):
        await connect(containers, service)
    await connect(containers, f"{service}-tor")
    outer = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    with pytest.raises(TransportError):
        await containers.engine.run("exec", containers.name(f"{service}-tor"), "python3", "-c", outer)
