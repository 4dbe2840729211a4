"""A testnet's life: brought up as processes or in containers, described, and taken down."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import trio

from hushcast_directory.run import NETWORK_FILE
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import private_directory
from hushcast_runtime.process import holder
from hushcast_runtime.wording import counted
from hushcast_testnet import gateways, processes
from hushcast_testnet.builder import Backend, Builder, Progress
from hushcast_testnet.inventory import Member, Testnet, Transport, describe, load, running
from hushcast_testnet.process_backend import ProcessBackend
from hushcast_testnet.signals import until_signalled

BackendName = Literal["processes", "containers"]


def up(
    directory: Path,
    nodes: int = 10,
    clients: int = 2,
    transport: Transport = "tor",
    epoch_seconds: int = 30,
    progress: Progress = lambda text: None,
    breakable: bool = False,
    backend: BackendName = "processes",
    with_gateways: bool = False,
) -> None:
    """Bring a testnet up in a new directory and leave it running.

    `with_gateways` starts an MQTT gateway beside each client. In a `breakable` one clocks can be set wrong
    and, on `tcp`, connections be cut, delayed and made lossy.
    Returns when every daemon is ready and holds the roster of all relays. Raises a `HushcastError`; whatever
    ends it early, nothing is left running.
    """
    directory = directory.absolute()
    chosen: Backend
    if backend == "containers":
        from hushcast_testnet.containers.backend import ContainerBackend

        if with_gateways:
            raise UsageError("gateways run as processes: leave --backend away")
        if transport != "tor":
            raise UsageError("containers have no loopback in common: their transport is tor")
        chosen = ContainerBackend(directory, breakable)
    else:
        chosen = ProcessBackend(directory, transport, breakable)
    builder = Builder(directory, chosen, epoch_seconds, breakable, progress, with_gateways)
    trio.run(until_signalled, _up, builder, nodes, clients)


def status(directory: Path) -> dict[str, Any]:
    """Describe a testnet; raises `UsageError` if there is none in this directory."""
    return trio.run(_status, directory.absolute())


def down(directory: Path, progress: Progress = lambda text: None) -> None:
    """Stop what `up` started, daemons that were restarted since included; files stay. Raises `UsageError`."""
    trio.run(until_signalled, _down, directory.absolute(), progress)


async def _up(builder: Builder, nodes: int, clients: int) -> None:
    directory = builder.directory
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: `testnet down` it and remove it, or name another")
    private_directory(directory)
    try:
        await builder.build(nodes, clients)
    except BaseException:
        with trio.CancelScope(shield=True):
            await _stop(builder.testnet, builder.progress)
        raise


async def _status(directory: Path) -> dict[str, Any]:
    members = [member for member in load(directory).members if member.role != "directory"]
    return status_of(directory, {member.name: await describe(member) for member in members})


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
        for member in testnet.members
        if member.role != "directory"
    ]
    ready = all(described.get(str(node["name"]), {}).get("ready") for node in nodes)
    servers = [member for member in testnet.members if member.role == "directory"]
    server = {
        "pid": holder(Path(servers[0].state)) if servers else None,
        "address": _directory_address(servers[0]) if servers else None,
        "config": servers[0].config if servers else None,
    }
    return {
        "ready": ready and bool(nodes) and server["pid"] is not None,
        "transport": testnet.transport,
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
        "directory": server,
    }


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


def _directory_address(member: Member) -> str | None:
    file = Path(member.state) / NETWORK_FILE
    if not file.exists():
        return None
    return str(tomllib.loads(file.read_text())["network"]["directory"])
