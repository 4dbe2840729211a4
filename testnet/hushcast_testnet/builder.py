"""The builder: brings a testnet up step by step, on any backend."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import trio

from hushcast_directory.run import NETWORK_FILE
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.local_sockets import MAX_PATH
from hushcast_runtime.wording import counted
from hushcast_testnet import gateways
from hushcast_testnet.inventory import FILE, Member, Testnet, Transport, deadline, describe

READY_WITHIN = 300.0  # seconds for all daemons; measured below 60 for twelve over Tor
LOOK_EVERY = 0.2  # seconds between looks at daemons

Progress = Callable[[str], None]
CONTROL_SOCKET = "control.sock"

Keep = Callable[..., None]
"""Changes fields of the testnet's description, on disk, too."""


class Backend(Protocol):
    """A backend that runs the daemons of a testnet: as processes of this machine, or in containers."""

    transport: Transport
    longest_socket: str
    """The longest path of a Unix socket in a daemon's home."""

    async def prepare(self, names: Sequence[str], keep: Keep, progress: Progress) -> None:
        """Start what daemons of these names need; whatever must be stopped later is kept at once."""

    def place(self, member: Member) -> Member:
        """Return the daemon with what this backend gives it."""

    def settings(self, member: Member) -> list[str]:
        """Return the lines of its configuration that reach its transport, sections in brackets."""

    def testnet_settings(self, member: Member) -> list[str]:
        """Return what the section `[testnet]` is to hold besides the usual."""

    async def launch(self, member: Member) -> None:
        """Start a daemon whose configuration is written."""

    async def check(self, members: Sequence[Member]) -> None:
        """Raise `TransportError` if any of these daemons has ended."""


class Builder:
    """Brings one testnet up, keeping its description on disk as it grows."""

    def __init__(
        self,
        directory: Path,
        backend: Backend,
        epoch: int,
        breakable: bool,
        progress: Progress,
        with_gateways: bool = False,
    ) -> None:
        """`with_gateways`: each client has an MQTT gateway beside it."""
        self.directory = directory
        self.progress = progress
        self._backend = backend
        self._with_gateways = with_gateways
        self._network = ""
        self.testnet = Testnet(backend.transport, epoch, time.time(), [], None, breakable=breakable)

    async def build(self, nodes: int, clients: int) -> None:
        """Start everything in order, and wait until it is ready; raises a `HushcastError`."""
        relays = [f"relay-{number}" for number in range(1, nodes + 1)]
        others = [f"client-{number}" for number in range(1, clients + 1)]
        for name in (*relays, *others):
            self._require_room(self.directory / "nodes" / name / self._backend.longest_socket)
        await self._backend.prepare(["directory", *relays, *others], self._keep, self.progress)
        await self._start_directory(nodes)
        self.progress(f"starting {counted(nodes, 'relay')} and {counted(clients, 'client')}")
        for name in relays:
            await self._start_node(name, "relay")
        for name in others:
            await self._start_node(name, "client")
        await self._until_ready(nodes)
        if self._with_gateways:
            self.progress(f"starting {counted(clients, 'gateway')}")
            daemons = [member for member in self.testnet.members if member.role == "client"]
            self._keep(gateways=gateways.prepare(self.directory, daemons))
            await gateways.start(self.testnet.gateways)

    def _require_room(self, socket: Path) -> None:
        if (over := len(bytes(socket)) - MAX_PATH) > 0:
            raise UsageError(
                f"{self.directory}: {counted(over, 'byte')} too long a path for Unix sockets:"
                " name a shorter one"
            )

    async def _start_directory(self, relays: int) -> None:
        self.progress("starting the directory")
        home = private_directory(self.directory / "directory")
        state = home / "state"
        member = self._backend.place(
            Member("directory", "directory", str(home / "config.toml"), str(state), None)
        )
        network = ["[network]", 'name = "testnet"', f"epoch_seconds = {self.testnet.epoch}"]
        await self._launch(member, [f"first_roster = {relays}", *self._common(member), *network])
        with deadline(READY_WITHIN, f"the directory is not ready in time: see {home / 'log'}"):
            while not (state / NETWORK_FILE).exists():
                await self._backend.check(self.testnet.members)
                await trio.sleep(LOOK_EVERY)
        self._network = (state / NETWORK_FILE).read_text()

    async def _start_node(self, name: str, role: Literal["relay", "client"]) -> None:
        home = private_directory(self.directory / "nodes" / name)
        member = Member(
            name, role, str(home / "config.toml"), str(home / "state"), str(home / CONTROL_SOCKET)
        )
        if self.testnet.breakable:
            member = msgspec.structs.replace(member, clock=str(home / "clock"))
        member = self._backend.place(member)
        testnet = ["[testnet]", f'name = "{name}"', f"traces = {quoted(self.directory / 'traces')}"]
        testnet += [f"began = {self.testnet.began}", *self._backend.testnet_settings(member)]
        if member.clock is not None:
            testnet.append(f"clock = {quoted(member.clock)}")
        head = [f'role = "{role}"', f"socket = {quoted(member.socket)}"]
        await self._launch(member, [*head, *self._common(member), self._network, *testnet])

    def _common(self, member: Member) -> list[str]:
        lines = [f"state = {quoted(member.state)}", f'transport = "{self.testnet.transport}"']
        return [*lines, *self._backend.settings(member), "[log]", 'level = "debug"']

    async def _launch(self, member: Member, config: list[str]) -> None:
        write_private(Path(member.config), "\n".join([*config, ""]).encode())
        self._keep(members=[*self.testnet.members, member])
        await self._backend.launch(member)

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
                await self._backend.check(self.testnet.members)
                await trio.sleep(LOOK_EVERY)

    def _keep_address(self, member: Member, address: str | None) -> None:
        self._keep(
            members=[
                msgspec.structs.replace(known, address=address) if known == member else known
                for known in self.testnet.members
            ]
        )

    def _keep(self, **changes: Any) -> None:
        self.testnet = msgspec.structs.replace(self.testnet, **changes)
        write_private(self.directory / FILE, msgspec.json.encode(self.testnet))


def quoted(value: object) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(str(value))  # JSON's strings are TOML's, too


def last_line(log: Path) -> str:
    """Return the last thing that a daemon said."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
