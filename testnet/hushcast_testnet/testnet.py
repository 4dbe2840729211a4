"""The process backend: directory and daemons as real processes of this machine, over Tor or loopback."""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import trio

from hushcast_directory.run import NETWORK_FILE
from hushcast_protocol.errors import UsageError
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.process import holder
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet import path, private_tor, processes
from hushcast_testnet.members import FILE, Member, Testnet, Transport, deadline, describe, load, start
from hushcast_testnet.path import PathProcess
from hushcast_testnet.private_tor import TorNetwork
from hushcast_testnet.processes import Process

TOR_WITHIN = 180.0  # seconds for the private Tor network; measured 14 to 52
READY_WITHIN = 300.0  # seconds for all daemons; measured below 60 for twelve over Tor
LOOK_EVERY = 0.2  # seconds between looks at daemons

Progress = Callable[[str], None]


def up(
    directory: Path,
    nodes: int = 10,
    clients: int = 2,
    transport: Transport = "tor",
    epoch_seconds: int = 30,
    progress: Progress = lambda text: None,
    breakable: bool = False,
) -> None:
    """Bring a testnet up in a new directory and leave it running.

    In a `breakable` one clocks can be set wrong and, on `tcp`, connections be cut, delayed and made lossy.
    Returns when every daemon is ready and holds the roster of all relays. Raises a `HushcastError`; whatever
    ends it early, nothing is left running.
    """
    builder = _Builder(directory.absolute(), transport, epoch_seconds, progress, breakable)
    trio.run(_up, builder, nodes, clients)


def status(directory: Path) -> dict[str, Any]:
    """Describe a testnet; raises `UsageError` if there is none in this directory."""
    return trio.run(_status, directory.absolute())


def down(directory: Path, progress: Progress = lambda text: None) -> None:
    """Stop what `up` started, daemons that were restarted since included; files stay. Raises `UsageError`."""
    trio.run(_down, directory.absolute(), progress)


async def _up(builder: _Builder, nodes: int, clients: int) -> None:
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


class _Builder:
    """Brings one testnet up, keeping its description on disk as it grows."""

    def __init__(
        self, directory: Path, transport: Transport, epoch: int, progress: Progress, breakable: bool
    ) -> None:
        self.directory = directory
        self.progress = progress
        self._network = ""
        self._processes: list[Process] = []
        self.testnet = Testnet(transport, epoch, time.time(), [], None, breakable=breakable)

    async def build(self, nodes: int, clients: int) -> None:
        """Start everything in order, and wait until it is ready."""
        if self.testnet.transport == "tor":
            await self._start_tor()
        elif self.testnet.breakable:
            await self._start_path()
        await self._start_directory(nodes)
        names = [(f"relay-{number}", "relay") for number in range(1, nodes + 1)]
        names += [(f"client-{number}", "client") for number in range(1, clients + 1)]
        self.progress(f"starting {nodes} relays and {clients} clients")
        for name, role in names:
            await self._start_node(name, role)  # type: ignore[arg-type]
        await self._until_ready(nodes)

    async def _start_tor(self) -> None:
        def report(percent: int, summary: str) -> None:
            self.progress(f"private Tor network: {percent} %, {summary}")

        with deadline(TOR_WITHIN, "the private Tor network is not ready in time"):
            network = await private_tor.start(self.directory / "tor", 1, report)
            self._keep(tor=network)
            await private_tor.wait_ready(network, report)

    async def _start_path(self) -> None:
        home = private_directory(self.directory / "path")
        command = [sys.executable, "-m", path.__name__, str(home)]
        process = await processes.launch("path", command, home / "log")
        file = home / path.PORT_FILE
        self._keep(path=PathProcess(process, "", str(home / path.CONTROL)))  # from now on it can be stopped
        with deadline(READY_WITHIN, f"the relay on the path is not ready: see {home / 'log'}"):
            while not file.exists():
                if not processes.is_running(process):
                    raise TransportError(f"the relay on the path ended: {_last_line(home / 'log')}")
                await trio.sleep(LOOK_EVERY)
        address = f"{LOOPBACK}:{file.read_text()}"
        self._keep(path=PathProcess(process, address, str(home / path.CONTROL)))

    async def _start_directory(self, relays: int) -> None:
        self.progress("starting the directory")
        home = private_directory(self.directory / "directory")
        state = home / "state"
        config = (
            f"first_roster = {relays}\n{self._common(state)}\n[network]\n"
            f'name = "testnet"\nepoch_seconds = {self.testnet.epoch}\n'
        )
        member = Member("directory", "directory", str(home / "config.toml"), str(state), None)
        await self._launch(member, config)
        with deadline(READY_WITHIN, "the directory is not ready in time"):
            while not (state / NETWORK_FILE).exists():
                self._check_alive()
                await trio.sleep(LOOK_EVERY)
        self._network = (state / NETWORK_FILE).read_text()

    async def _start_node(self, name: str, role: Literal["relay", "client"]) -> None:
        home = private_directory(self.directory / "nodes" / name)
        socket = home / "control.sock"
        config = (
            f'role = "{role}"\nsocket = {_quoted(socket)}\n{self._common(home / "state")}\n{self._network}\n'
            f'[testnet]\nname = "{name}"\ntraces = {_quoted(self.directory / "traces")}\n'
            f"began = {self.testnet.began}\n"
        )
        member = Member(name, role, str(home / "config.toml"), str(home / "state"), str(socket))
        if self.testnet.breakable:
            member = msgspec.structs.replace(member, clock=str(home / "clock"))
            config += f"clock = {_quoted(member.clock)}\n"
        if self.testnet.path is not None:
            number = len(self._processes)
            member = msgspec.structs.replace(member, host=f"127.77.{number // 250}.{number % 250 + 1}")
            config += f"host = {_quoted(member.host)}\npath = {_quoted(self.testnet.path.address)}\n"
        await self._launch(member, config)

    def _common(self, state: Path) -> str:
        lines = [f"state = {_quoted(state)}", f'transport = "{self.testnet.transport}"']
        lines += ["[log]", 'level = "debug"']
        if self.testnet.tor is not None:
            client = self.testnet.tor.clients[0]
            lines += [
                "[tor]",
                'mode = "system"',
                f"control = {_quoted(client.control)}",
                f"socks = {_quoted(client.socks)}",
            ]
        return "\n".join(lines)

    async def _launch(self, member: Member, config: str) -> None:
        write_private(Path(member.config), config.encode())
        self._keep(member=member)
        self._processes.append(await start(member))

    async def _until_ready(self, relays: int) -> None:
        waiting = [member for member in self.testnet.members if member.role != "directory"]
        total = len(waiting)
        with deadline(READY_WITHIN, f"not all daemons are ready in time: see logs in {self.directory}"):
            while waiting:
                still = []
                for member in waiting:
                    described = await describe(member)
                    roster = described.get("roster") or {}
                    if not described.get("ready") or roster.get("relays") != relays:
                        still.append(member)
                        continue
                    self._keep_address(member, described.get("address"))
                if len(still) != len(waiting):
                    self.progress(f"{total - len(still)} of {total} daemons are ready")
                waiting = still
                self._check_alive()
                await trio.sleep(LOOK_EVERY)

    def _check_alive(self) -> None:
        for process, member in zip(self._processes, self.testnet.members, strict=True):
            if not processes.is_running(process):
                raise TransportError(
                    f"{process.name} ended: {_last_line(Path(member.config).parent / 'log')}"
                )

    def _keep_address(self, member: Member, address: str | None) -> None:
        members = [
            msgspec.structs.replace(known, address=address) if known == member else known
            for known in self.testnet.members
        ]
        self._write(msgspec.structs.replace(self.testnet, members=members))

    def _keep(
        self, member: Member | None = None, tor: TorNetwork | None = None, path: PathProcess | None = None
    ) -> None:
        known = self.testnet
        added = [member] if member is not None else []
        self._write(
            msgspec.structs.replace(
                known, members=[*known.members, *added], tor=tor or known.tor, path=path or known.path
            )
        )

    def _write(self, testnet: Testnet) -> None:
        self.testnet = testnet
        write_private(self.directory / FILE, msgspec.json.encode(testnet))


async def _status(directory: Path) -> dict[str, Any]:
    testnet = load(directory)
    nodes = []
    ready = True
    for member in testnet.members:
        if member.role == "directory":
            continue
        ready = ready and bool((await describe(member)).get("ready"))
        nodes.append(
            {
                "name": member.name,
                "role": member.role,
                "socket": member.socket,
                "pid": holder(Path(member.state)),
                "address": member.address,
                "config": member.config,
            }
        )
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
        "directory": server,
    }


async def _down(directory: Path, progress: Progress) -> None:
    await _stop(load(directory), progress)


async def _stop(testnet: Testnet, progress: Progress) -> None:
    running = []
    for member in testnet.members:
        pid = holder(Path(member.state))
        process = processes.find(member.name, pid) if pid is not None else None
        if process is not None:
            running.append(process)
    progress(f"stopping {len(running)} daemons")
    await processes.stop(running)
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


def _quoted(value: object) -> str:
    return json.dumps(str(value))  # JSON's strings are TOML's, too


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
