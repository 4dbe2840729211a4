"""A testnet's life: brought up as processes or in containers, described, and taken down."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import trio

from hushcast_brokers.broker_sections import BROKER_FILE
from hushcast_brokers.tomography.section import SERVICE_FILE
from hushcast_central.proxy.process import PROXY_FILE
from hushcast_directory.server.process import NETWORK_FILE
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import private_directory
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.wording import counted
from hushcast_testnet import gateways, processes
from hushcast_testnet.builder import Backend, Builder, Progress
from hushcast_testnet.inventory import (
    TOR,
    CarrierName,
    Member,
    Testnet,
    Transport,
    away,
    describe,
    load,
    running,
)
from hushcast_testnet.layouts import BrokersModel, Profile, layout_of
from hushcast_testnet.process_backend import ProcessBackend
from hushcast_testnet.signals import until_signalled
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.line_watch import ObservedLinks
from hushcast_testnet.tor.private_tor import proxy_of

BackendName = Literal["processes", "containers"]


def up(
    directory: Path,
    nodes: int | None = None,
    clients: int | None = None,
    transport: Transport = "tor",
    epoch_seconds: int = 30,
    progress: Progress = lambda text: None,
    breakable: bool = False,
    backend: BackendName = "processes",
    with_gateways: bool = False,
    carrier: CarrierName = "overlay",
    proxies: int | None = None,
    edges: int | None = None,
    profile: Profile | None = None,
    privacy: BrokersModel | None = None,
    layers: int | None = None,
    aggregation: bool | None = None,
    with_tomography: bool = False,
    authorities: int | None = None,
    shard_size: int | None = None,
    keepers: int | None = None,
    cover: bool = False,
    distance: Distance = NEAR,
    observe_links: ObservedLinks = "none",
) -> None:
    """Bring a testnet up in a new directory and leave it running.

    On the overlay `nodes` are relays, and `clients` stand beside them; of several `authorities` more than
    half agree on each roster, cut the network into shards of `shard_size` relays if it is large enough, have
    `keepers` keep what is published on a topic, and relays take letters under `cover`. Of a server with
    `proxies`, and of brokers with `edges`, all are clients; `with_tomography` brokers have a service.
    Overlays and central systems have a `profile`, brokers under the `privacy` `full`, with `layers`, and
    perhaps `aggregation`. `with_gateways` starts an MQTT gateway beside each client. In a `breakable` one
    clocks and connections can be broken. At a `distance` connections between tors take that long;
    of those whose links are observed what passes on their lines is traced. Returns when every daemon is
    ready. Raises a `HushcastError`; nothing is left running then.
    """
    directory = directory.absolute()
    agreed = (authorities, shard_size, keepers, cover)
    layout = layout_of(
        carrier,
        nodes,
        clients,
        proxies,
        edges,
        profile,
        privacy,
        layers,
        aggregation,
        with_tomography,
        *agreed,
    )
    _check_apart(transport, backend, distance, observe_links)
    chosen: Backend
    if backend == "containers":
        chosen = _containers(directory, transport, breakable, with_gateways, distance)
    else:
        chosen = ProcessBackend(directory, transport, breakable, distance, observe_links)
    builder = Builder(directory, chosen, layout, epoch_seconds, breakable, progress, with_gateways)
    trio.run(until_signalled, _up, builder)


def _check_apart(
    transport: Transport, backend: BackendName, distance: Distance, observe_links: ObservedLinks
) -> None:
    """Raise `UsageError` if there is nothing between tors that could take its time, or watch lines."""
    if distance.ms and transport != "tor":
        raise UsageError("a distance is between tors: leave --distance away, or take --transport tor")
    if observe_links != "none" and (not distance.ms or backend == "containers"):
        raise UsageError(
            "--observe-links has the proxy between tors of processes watch: give --distance, as 40, and leave"
            " --backend away"
        )


def _containers(
    directory: Path, transport: Transport, breakable: bool, with_gateways: bool, distance: Distance
) -> Backend:
    from hushcast_testnet.containers.container_backend import ContainerBackend

    if with_gateways:
        raise UsageError("gateways run as processes: leave --backend away")
    if transport != "tor":
        raise UsageError("containers have no loopback in common: their transport is tor")
    return ContainerBackend(directory, breakable, distance)


def status(directory: Path) -> dict[str, Any]:
    """Describe a testnet; raises `UsageError` if there is none in this directory."""
    return trio.run(_status, directory.absolute())


def down(directory: Path, progress: Progress = lambda text: None) -> None:
    """Stop what `up` started, daemons that were restarted since included; files stay. Raises `UsageError`."""
    trio.run(until_signalled, _down, directory.absolute(), progress)


async def _up(builder: Builder) -> None:
    directory = builder.directory
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: `testnet down` it and remove it, or name another")
    private_directory(directory)
    try:
        await builder.build()
    except BaseException:
        with trio.CancelScope(shield=True):
            await _stop(builder.testnet, builder.progress)
        raise


async def _status(directory: Path) -> dict[str, Any]:
    return status_of(directory, {member.name: await describe(member) for member in load(directory).nodes})


def status_of(directory: Path, described: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Describe a testnet whose daemons, by name, say this of themselves; raises `UsageError`."""
    testnet = load(directory)
    nodes = [
        {
            "name": member.name,
            "role": member.role,
            "socket": member.socket,
            "pid": holder(Path(member.state)),
            "address": member.address,
            "config": member.config,
        }
        for member in testnet.nodes
    ]
    ready = all(described.get(str(node["name"]), {}).get("ready") for node in nodes)
    serving = [member for member in testnet.members if not member.is_node]
    distance = _distance(directory, testnet)
    proxied = distance is None or distance["pid"] is not None
    return {
        "ready": ready and bool(nodes) and bool(serving) and not away(testnet) and proxied,
        "transport": testnet.transport,
        "distance": distance,
        "epoch": testnet.epoch,
        "nodes": nodes,
        "gateways": [
            {
                "name": one.name,
                "daemon": one.daemon,
                "pid": holder(Path(one.state)),
                "port": one.port,
                "socket": one.socket,
                "config": one.config,
            }
            for one in testnet.gateways
        ],
        **_SERVING[testnet.carrier](serving),
    }


def _distance(directory: Path, testnet: Testnet) -> dict[str, Any] | None:
    far = testnet.distance
    return {"ms": far.ms, "seed": far.seed, "pid": proxy_of(directory / TOR)} if far.ms else None


def _directory(serving: Sequence[Member]) -> dict[str, Any]:
    if len(serving) > 1:
        return {
            "directories": [
                {"name": one.name}
                | {"pid": holder(Path(one.state)), "address": _listed_at(one, number), "config": one.config}
                for number, one in enumerate(serving)
            ]
        }
    found = _served(serving[0], "directory") if serving else dict.fromkeys(("pid", "address", "config"))
    return {"directory": found}


def _central(serving: Sequence[Member]) -> dict[str, Any]:
    proxies = [{"name": one.name} | _served(one, "address") for one in serving if one.role == "proxy"]
    servers = [_served(one, "server") for one in serving if one.role == "server"]
    return {"carrier": "central", "server": servers[0] if servers else None, "proxies": proxies}


def _brokers(serving: Sequence[Member]) -> dict[str, Any]:
    brokers = [
        {"name": one.name, "role": one.role} | _served(one, "root" if one.role == "root" else "address")
        for one in serving
        if one.role != "tomography"
    ]
    services = [_served(one, "address") for one in serving if one.role == "tomography"]
    return {"carrier": "brokers", "brokers": brokers, "tomography": services[0] if services else None}


_SERVING: Mapping[CarrierName, Callable[[Sequence[Member]], dict[str, Any]]] = {
    "overlay": _directory,
    "central": _central,
    "brokers": _brokers,
}


def _served(member: Member, key: str) -> dict[str, Any]:
    """Describe what serves the nodes; it gives out its address under this key."""
    address = _given_out(member, key)
    return {"pid": holder(Path(member.state)), "address": address, "config": member.config}


async def _down(directory: Path, progress: Progress) -> None:
    with trio.CancelScope(shield=True):  # half of a testnet would be left
        await _stop(load(directory), progress)


async def _stop(testnet: Testnet, progress: Progress) -> None:
    if testnet.containers is not None:
        progress("removing the containers")
        await testnet.containers.remove()
        if testnet.path is not None:
            await processes.stop([testnet.path.process])
        return
    await processes.stop(gateways.running(testnet))
    daemons = running(testnet)
    progress(f"stopping {counted(len(daemons), 'daemon')}")
    await processes.stop(daemons)
    if testnet.path is not None:
        await processes.stop([testnet.path.process])
    if testnet.tor is not None:
        progress("stopping the private Tor network")
        await processes.stop(testnet.tor.processes)


_GIVEN_OUT: Mapping[str, str] = {
    "proxy": PROXY_FILE,
    "inner": BROKER_FILE,
    "edge": BROKER_FILE,
    "tomography": SERVICE_FILE,
}


def _listed_at(member: Member, number: int) -> str | None:
    """Return the address of one of several directories: each lists all in their order, once it knows them."""
    file = Path(member.state) / NETWORK_FILE
    network = tomllib.loads(file.read_text())["network"] if file.exists() else {}
    listed = network.get("authorities")
    return str(listed[number]["address"]) if listed else network.get("directory")


def _given_out(member: Member, key: str) -> str | None:
    """Return what a daemon wrote for others under this key; nothing if it has not yet."""
    file = Path(member.state) / _GIVEN_OUT.get(member.role, NETWORK_FILE)
    if not file.exists():
        return None
    ((_, found),) = tomllib.loads(file.read_text()).items()
    return str((found[0] if isinstance(found, list) else found)[key])
