"""The process backend: directory and daemons as real processes of this machine, over Tor or loopback."""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import trio

from hushcast_directory.run import NETWORK_FILE
from hushcast_node.control.client import NoDaemon, ask
from hushcast_node.control.words import Described, Status
from hushcast_protocol.errors import UsageError
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.process import holder
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import private_tor, processes
from hushcast_testnet.private_tor import TorNetwork
from hushcast_testnet.processes import Process

TOR_WITHIN = 180.0  # seconds for the private Tor network; measured 14 to 52
READY_WITHIN = 300.0  # seconds for all daemons; measured below 60 for twelve over Tor
LOOK_EVERY = 0.2  # seconds between looks at daemons

Progress = Callable[[str], None]
Transport = Literal["tor", "tcp"]
_FILE = "testnet.json"


class Member(msgspec.Struct, frozen=True):
    """One daemon of a testnet; paths are absolute."""

    name: str
    role: Literal["relay", "client", "directory"]
    config: str
    state: str
    socket: str | None
    address: str | None = None


class Testnet(msgspec.Struct, frozen=True):
    """What `up` leaves in the testnet's directory for `status` and `down`."""

    transport: Transport
    epoch: int
    began: float
    members: list[Member]
    tor: TorNetwork | None


def up(
    directory: Path,
    nodes: int = 10,
    clients: int = 2,
    transport: Transport = "tor",
    epoch_seconds: int = 30,
    progress: Progress = lambda text: None,
) -> None:
    """Bring a testnet up in a new directory and leave it running.

    Returns when every daemon is ready and holds the roster of all relays. Raises a `HushcastError`; whatever
    ends it early, nothing is left running.
    """
    trio.run(_up, directory.absolute(), nodes, clients, transport, epoch_seconds, progress)


def status(directory: Path) -> dict[str, Any]:
    """Describe a testnet; raises `UsageError` if there is none in this directory."""
    return trio.run(_status, directory.absolute())


def down(directory: Path, progress: Progress = lambda text: None) -> None:
    """Stop what `up` started, daemons that were restarted since included; files stay. Raises `UsageError`."""
    trio.run(_down, directory.absolute(), progress)


async def _up(
    directory: Path, nodes: int, clients: int, transport: Transport, epoch_seconds: int, progress: Progress
) -> None:
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty: `testnet down` it and remove it, or name another")
    private_directory(directory)
    builder = _Builder(directory, transport, epoch_seconds, progress)
    try:
        await builder.build(nodes, clients)
    except BaseException:
        with trio.CancelScope(shield=True):
            await _stop(builder.testnet, progress)
        raise


class _Builder:
    """Brings one testnet up, keeping its description on disk as it grows."""

    def __init__(self, directory: Path, transport: Transport, epoch: int, progress: Progress) -> None:
        self._directory = directory
        self._progress = progress
        self._network = ""
        self._processes: list[Process] = []
        self.testnet = Testnet(transport, epoch, time.time(), [], None)

    async def build(self, nodes: int, clients: int) -> None:
        """Start everything in order, and wait until it is ready."""
        if self.testnet.transport == "tor":
            await self._start_tor()
        await self._start_directory(nodes)
        names = [(f"relay-{number}", "relay") for number in range(1, nodes + 1)]
        names += [(f"client-{number}", "client") for number in range(1, clients + 1)]
        self._progress(f"starting {nodes} relays and {clients} clients")
        for name, role in names:
            await self._start_node(name, role)  # type: ignore[arg-type]
        await self._until_ready(nodes)

    async def _start_tor(self) -> None:
        def report(percent: int, summary: str) -> None:
            self._progress(f"private Tor network: {percent} %, {summary}")

        with deadline(TOR_WITHIN, "the private Tor network is not ready in time"):
            network = await private_tor.start(self._directory / "tor", 1, report)
            self._keep(tor=network)
            await private_tor.wait_ready(network, report)

    async def _start_directory(self, relays: int) -> None:
        self._progress("starting the directory")
        home = private_directory(self._directory / "directory")
        state = home / "state"
        config = (
            f"first_roster = {relays}\n{self._common(state)}\n[network]\n"
            f'name = "testnet"\nepoch_seconds = {self.testnet.epoch}\n'
        )
        await self._launch("directory", "directory", home, config, None)
        with deadline(READY_WITHIN, "the directory is not ready in time"):
            while not (state / NETWORK_FILE).exists():
                self._check_alive()
                await trio.sleep(LOOK_EVERY)
        self._network = (state / NETWORK_FILE).read_text()

    async def _start_node(self, name: str, role: Literal["relay", "client"]) -> None:
        home = private_directory(self._directory / "nodes" / name)
        socket = home / "control.sock"
        config = (
            f'role = "{role}"\nsocket = {_quoted(socket)}\n{self._common(home / "state")}\n{self._network}\n'
            f'[testnet]\nname = "{name}"\ntraces = {_quoted(self._directory / "traces")}\n'
            f"began = {self.testnet.began}\n"
        )
        await self._launch(name, role, home, config, socket)

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

    async def _launch(
        self,
        name: str,
        role: Literal["relay", "client", "directory"],
        home: Path,
        config: str,
        socket: Path | None,
    ) -> Process:
        path = home / "config.toml"
        write_private(path, config.encode())
        self._keep(member=Member(name, role, str(path), str(home / "state"), str(socket) if socket else None))
        module = "hushcast_directory" if role == "directory" else "hushcast_node"
        process = await processes.launch(name, [sys.executable, "-m", module, str(path)], home / "log")
        self._processes.append(process)
        return process

    async def _until_ready(self, relays: int) -> None:
        waiting = [member for member in self.testnet.members if member.role != "directory"]
        total = len(waiting)
        with deadline(READY_WITHIN, f"not all daemons are ready in time: see logs in {self._directory}"):
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
                    self._progress(f"{total - len(still)} of {total} daemons are ready")
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

    def _keep(self, member: Member | None = None, tor: TorNetwork | None = None) -> None:
        added = [member] if member is not None else []
        self._write(
            msgspec.structs.replace(
                self.testnet, members=[*self.testnet.members, *added], tor=tor or self.testnet.tor
            )
        )

    def _write(self, testnet: Testnet) -> None:
        self.testnet = testnet
        write_private(self._directory / _FILE, msgspec.json.encode(testnet))


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
    if testnet.tor is not None:
        progress("stopping the private Tor network")
        await processes.stop(testnet.tor.processes)


def load(directory: Path) -> Testnet:
    """Read what `up` left in a directory; raise `UsageError` if that is nothing of ours."""
    try:
        return msgspec.json.decode((directory / _FILE).read_bytes(), type=Testnet)
    except FileNotFoundError:
        raise UsageError(f"there is no testnet in {directory}: `hushcast testnet up` makes one") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{directory / _FILE} is not a testnet of this version: {error}") from None


def _directory_address(member: Member) -> str | None:
    file = Path(member.state) / NETWORK_FILE
    if not file.exists():
        return None
    return str(tomllib.loads(file.read_text())["network"]["directory"])


async def describe(member: Member) -> dict[str, Any]:
    """Return the daemon's status, empty while it cannot be asked."""
    assert member.socket is not None
    try:
        async with ask(Path(member.socket), Status()) as conversation:
            answer = await conversation.next()
    except NoDaemon:
        return {}
    return answer.status if isinstance(answer, Described) else {}


def _quoted(value: object) -> str:
    return json.dumps(str(value))  # JSON's strings are TOML's, too


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


@contextmanager
def deadline(seconds: float, otherwise: str) -> Iterator[None]:
    """Raise `TransportError` with the text `otherwise` if what is inside takes longer."""
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise TransportError(otherwise) from None
