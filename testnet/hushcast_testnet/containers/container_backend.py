"""Daemons in containers: brings up the private Tor network, and every daemon beside a tor of its own."""

from __future__ import annotations

import math
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.tor.settings import SERVICE_NAME
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.wording import counted
from hushcast_testnet import processes
from hushcast_testnet.builder import Keep, Progress, last_line, quoted
from hushcast_testnet.containers import socket_relay
from hushcast_testnet.containers.compose import (
    ComposeFrame,
    Containers,
    DaemonContainer,
    TorContainer,
    compose,
)
from hushcast_testnet.containers.engine import find_engine
from hushcast_testnet.containers.image import require_image
from hushcast_testnet.containers.socket_relay import PAIRS_FILE, SocketFolders
from hushcast_testnet.inventory import TOR, Member, Testnet, Transport, deadline, run_by
from hushcast_testnet.path_proxy import CONTROL, PathProcess
from hushcast_testnet.tor import distance_proxy, private_tor, tor_network
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.distance_proxy import FOLDER
from hushcast_testnet.tor.tor_network import PreparedNetwork, TorNode

TOR_WITHIN = 300.0  # seconds for the private Tor network, containers included
FILE = "compose.yaml"
_PORT = 9001
_CHECK_EVERY = 2.0  # seconds; each takes the engine a fifth of a second of CPU
_TOR_DOORS = "tor-doors"
_FIRST_HOST = 10  # of the tors' addresses, which others must know, and which must be the same after a cut
MAX_NAMES = 200  # daemons; a network of 254 addresses has a tor for each, and eight more


class ContainerBackend:
    """Implements `Backend` with docker or podman."""

    def __init__(self, directory: Path, breakable: bool, distance: Distance = NEAR) -> None:
        self.transport: Transport = "tor"
        self.longest_socket = f"{_TOR_DOORS}/{'s' * SERVICE_NAME}"
        self._breakable = breakable
        self._distance = distance
        self._directory = directory
        self._containers: Containers | None = None
        self._homes: dict[str, Path] = {}
        self._checked = -math.inf

    async def prepare(
        self, testnet: Testnet, members: Sequence[Member], keep: Keep, progress: Progress
    ) -> None:
        """Make all containers, stopped; start the private Tor network, and each daemon's own tor."""
        self._homes = {member.name: member.home for member in members}
        if len(members) > MAX_NAMES:
            raise UsageError(f"a container testnet has at most {MAX_NAMES} daemons")
        engine = await find_engine()
        image = await require_image(engine, progress)
        project = f"hushcast-{secrets.token_hex(4)}"
        progress("making keys")
        # Two testnets must not meet: if this network is taken already, the engine refuses to make it.
        subnet = f"10.{128 + secrets.randbelow(127)}.{secrets.randbelow(256)}"
        addresses: dict[str, str] = {}

        def address(service: str) -> str:
            return addresses.setdefault(service, f"{subnet}.{_FIRST_HOST + len(addresses)}")

        ports = range(_PORT, _PORT + tor_network.ports_needed(0, self._distance))
        network = await tor_network.prepare(self._directory / TOR, ports, 0, address, self._distance)
        tors = [
            TorContainer(n.name, n.directory / "torrc", {n.directory: n.directory}) for n in network.nodes
        ]
        sidecars = {name: self._sidecar(name, network) for name in self._homes}
        for name, node in sidecars.items():
            address(node.name)
            tors.append(
                TorContainer(
                    node.name,
                    node.directory / "torrc",
                    {node.directory: node.directory, self._tor_doors(name): _doors(self._homes[name])},
                )
            )
        containers = Containers(engine, project, str(self._directory / FILE), addresses)
        private_directory(self._directory / "traces")
        frame = ComposeFrame(containers, image, f"{os.getuid()}:{os.getgid()}")
        daemons = [self._daemon(member) for member in members]
        if self._distance.ms:
            order = private_tor.order_proxy(network, self._distance)
            run = (distance_proxy.__name__,)
            daemons.append(DaemonContainer(FOLDER, run, order, {order.parent: order.parent}))
        text = compose(frame, f"{subnet}.0/24", tors, daemons)
        write_private(Path(containers.file), text.encode())
        keep(containers=containers, distance=self._distance)
        progress(f"making {counted(len(tors) + len(daemons), 'container')}")
        await engine.compose(Path(containers.file), project, "up", "--no-start")
        self._containers = containers
        if self._breakable:
            await self._start_relay(keep)

        def report(percent: int, summary: str) -> None:
            progress(f"private Tor network: {percent} %, {summary}")

        with deadline(TOR_WITHIN, "the private Tor network is not ready in time"):
            if self._distance.ms:
                await containers.start(FOLDER)
                await private_tor.until_proxied(self._directory / TOR)
            whole = replace(network, client_nodes=tuple(sidecars.values()))
            await private_tor.start_in_order(whole, _ContainerStarter(containers), report)

    async def _start_relay(self, keep: Keep) -> None:
        home = private_directory(self._directory / "path")
        pairs = [
            SocketFolders(name, str(_doors(home)), str(self._tor_doors(name)))
            for name, home in self._homes.items()
        ]
        write_private(home / PAIRS_FILE, msgspec.json.encode(pairs))
        command = [sys.executable, "-m", socket_relay.__name__, str(home)]
        process = await processes.launch("path", command, home / "log")
        keep(path=PathProcess(process, "", str(home / CONTROL)))

    def _tor_doors(self, name: str) -> Path:
        """Return the directory of doors as tor sees it: another than the daemon's if a relay is between."""
        beside = _TOR_DOORS if self._breakable else "doors"
        return private_directory(self._homes[name] / beside)

    def _sidecar(self, name: str, network: PreparedNetwork) -> TorNode:
        node = tor_network.make_node(private_directory(self._homes[name]), f"{name}-tor")
        own = private_directory(_doors(self._homes[name]))
        snippet = network.snippet.read_text() + f"CookieAuthFile {own / 'cookie'}\n"
        tor_network.write_client(node, snippet, f"unix:{own / 'control'}", f"unix:{own / 'socks'}")
        return node

    def _daemon(self, member: Member) -> DaemonContainer:
        home, traces = member.home, self._directory / "traces"
        return DaemonContainer(
            member.name, run_by(member.role), Path(member.config), {home: home, traces: traces}
        )

    def place(self, member: Member) -> Member:
        """Name its container."""
        assert self._containers is not None
        return msgspec.structs.replace(member, container=self._containers.name(member.name))

    def settings(self, member: Member) -> list[str]:
        """Return the section `[tor]`: Unix sockets alone."""
        own = _doors(member.home)
        ways = [f"control = {quoted(f'unix:{own}/control')}", f"socks = {quoted(f'unix:{own}/socks')}"]
        return ["[tor]", 'mode = "system"', *ways, f"services = {quoted(own)}"]

    def testnet_settings(self, member: Member) -> list[str]:
        """Return nothing: the path is the engine's own."""
        return []

    async def launch(self, member: Member) -> None:
        """Start the daemon's container."""
        assert self._containers is not None
        await self._containers.start(member.name)

    async def reload(self, member: Member) -> None:
        """Have the engine send the signal for it."""
        assert self._containers is not None
        name = self._containers.name(member.name)
        await self._containers.engine.run("kill", "--signal", "HUP", name)

    async def restart(self, member: Member) -> None:
        """Have the engine stop and start its container."""
        assert self._containers is not None
        await self._containers.engine.run("restart", self._containers.name(member.name))

    async def check(self, members: Sequence[Member]) -> None:
        """Raise `TransportError` if a container of this testnet has ended; look no more often than needed."""
        assert self._containers is not None
        if trio.current_time() < self._checked + _CHECK_EVERY:
            return
        self._checked = trio.current_time()
        for name in await self._containers.there("status=exited"):
            service = name.removeprefix(self._containers.name(""))
            if home := self._homes.get(service.removesuffix("-tor")):
                log = home / service / "log" if service.endswith("-tor") else home / "log"
            else:  # of the private Tor network
                log = self._directory / TOR / service / "log"
            raise TransportError(f"{service} ended: {last_line(log)}")


def _doors(home: Path) -> Path:
    """Return the directory of Unix sockets that a daemon and its tor share."""
    return home / "doors"


class _ContainerStarter:
    """Implements `private_tor.Starter`."""

    # An engine on a busy machine takes seconds for a signal, and the next vote is minutes later.
    lead = 16

    def __init__(self, containers: Containers) -> None:
        self._containers = containers

    async def launch(self, node: TorNode) -> None:
        await self._containers.start(node.name)

    async def reload(self, nodes: Sequence[TorNode]) -> None:
        names = [self._containers.name(node.name) for node in nodes]
        await self._containers.engine.run("kill", "--signal", "HUP", *names)
