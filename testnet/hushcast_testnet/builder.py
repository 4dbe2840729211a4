"""The builder: brings a testnet up step by step, on any backend."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.processes.doctors_socket import DOCTORS_SOCKET
from hushcast_runtime.processes.program import program_called
from hushcast_runtime.transports.local_sockets import MAX_PATH
from hushcast_runtime.wording import counted
from hushcast_testnet import gateways
from hushcast_testnet.inventory import FILE, CarrierName, Member, Testnet, Transport, deadline, describe

READY_WITHIN = 300.0  # seconds for all daemons; measured below 60 for twelve over Tor
LOOK_EVERY = 0.2  # seconds between looks at daemons

Progress = Callable[[str], None]

Keep = Callable[..., None]
"""Changes fields of the testnet's description, on disk, too."""


class Backend(Protocol):
    """A backend that runs the daemons of a testnet: as processes of this machine, or in containers."""

    transport: Transport
    longest_socket: str
    """The longest path of a Unix socket in a daemon's own directory."""

    async def prepare(
        self, testnet: Testnet, members: Sequence[Member], keep: Keep, progress: Progress
    ) -> None:
        """Start what daemons of a `testnet` to be need; whatever must be stopped later is kept at once."""

    def place(self, member: Member) -> Member:
        """Return the daemon with what this backend gives it."""

    def settings(self, member: Member) -> list[str]:
        """Return the lines of its configuration that reach its transport, sections in brackets."""

    def testnet_settings(self, member: Member) -> list[str]:
        """Return what the section `[testnet]` is to hold besides the usual."""

    async def launch(self, member: Member) -> None:
        """Start a daemon whose configuration is written."""

    async def reload(self, member: Member) -> None:
        """Have a daemon that runs read its configuration again."""

    async def restart(self, member: Member) -> None:
        """Stop a daemon that runs, and start it again."""

    async def check(self, members: Sequence[Member]) -> None:
        """Raise `TransportError` if any of these daemons has ended."""


class Layout(Protocol):
    """Which daemons a testnet of one carrier consists of, and how they are started."""

    @property
    def carrier(self) -> CarrierName:
        """The carrier whose network it is."""

    def members(self, directory: Path) -> list[Member]:
        """Return all daemons, the nodes last, without what a backend gives them."""

    async def start(self, builder: Builder, members: list[Member]) -> None:
        """Start these daemons, now with what the backend gives them, in order."""

    def is_ready(self, described: dict[str, Any]) -> bool:
        """Tell whether a node that describes itself like this can be used."""


class Builder:
    """Brings one testnet up, keeping its description on disk as it grows."""

    def __init__(
        self,
        directory: Path,
        backend: Backend,
        layout: Layout,
        epoch: int,
        breakable: bool,
        progress: Progress,
        with_gateways: bool = False,
    ) -> None:
        """`with_gateways`: each client has an MQTT gateway beside it."""
        self.directory = directory
        self.progress = progress
        self._backend = backend
        self._layout = layout
        self._with_gateways = with_gateways
        self.testnet = Testnet(
            backend.transport, epoch, time.time(), [], None, breakable=breakable, carrier=layout.carrier
        )

    async def build(self) -> None:
        """Start everything in order, and wait until it is ready; raises a `HushcastError`."""
        members = self._layout.members(self.directory)
        for member in members:
            self._require_room(member.home / self._backend.longest_socket)
            if not member.is_node:
                self._require_room(Path(member.state) / DOCTORS_SOCKET)
        await self._backend.prepare(self.testnet, members, self._keep, self.progress)
        await self._layout.start(self, [self._placed(member) for member in members])
        await self._until_ready()
        if self._with_gateways:
            daemons = [member for member in self.testnet.members if member.role == "client"]
            self.progress(f"starting {counted(len(daemons), 'gateway')}")
            with gateways.prepared(self.directory, daemons) as prepared:
                self._keep(gateways=prepared)
                await gateways.start(prepared)

    def _require_room(self, socket: Path) -> None:
        if (over := len(bytes(socket)) - MAX_PATH) > 0:
            raise UsageError(
                f"{self.directory}: {counted(over, 'byte')} too long a path for Unix sockets:"
                " name a shorter one"
            )

    def _placed(self, member: Member) -> Member:
        private_directory(member.home)
        if self.testnet.breakable and member.role != "directory":
            member = msgspec.structs.replace(member, clock=str(member.home / "clock"))
        return self._backend.place(member)

    async def start(self, member: Member, keys: Sequence[str], sections: Sequence[str]) -> None:
        """Write a daemon's configuration, with these keys and sections besides the usual, and start it."""
        self._configure(member, keys, sections)
        self._keep(members=[*self.testnet.members, member])
        await self._backend.launch(member)

    async def change(self, member: Member, keys: Sequence[str], sections: Sequence[str]) -> None:
        """Give a daemon that runs another configuration."""
        self._configure(member, keys, sections)
        await self._backend.reload(member)

    async def restart(self, member: Member, keys: Sequence[str], sections: Sequence[str]) -> None:
        """Start a daemon that runs again with another configuration."""
        self._configure(member, keys, sections)
        await self._backend.restart(member)

    def _configure(self, member: Member, keys: Sequence[str], sections: Sequence[str]) -> None:
        named = f'program = "{program_called(member.role).name}"'
        usual = [f"state = {quoted(member.state)}", f'transport = "{self.testnet.transport}"']
        ways = [*self._backend.settings(member), "[log]", 'level = "debug"']
        write_private(Path(member.config), "\n".join([named, *keys, *usual, *ways, *sections, ""]).encode())

    async def start_node(self, member: Member, network: str) -> None:
        """Start a daemon for applications.

        `network` is the section that joins it to the network.
        """
        keys = [f'role = "{member.role}"', f"socket = {quoted(member.socket)}"]
        # Nobody is to be hidden here, and who tries it out waits for no host.
        planting = ["[presence]", 'trees = "always"'] if member.role == "relay" else []
        await self.start(member, keys, [network, *planting, *self.traced(member)])

    def traced(self, member: Member) -> list[str]:
        """Return a daemon's section `[testnet]`."""
        lines = ["[testnet]", f'name = "{member.name}"', f"traces = {quoted(self.directory / 'traces')}"]
        lines += [f"began = {self.testnet.began}", *self._backend.testnet_settings(member)]
        return lines if member.clock is None else [*lines, f"clock = {quoted(member.clock)}"]

    async def written(self, member: Member, name: str, holding: Collection[str] = ()) -> str:
        """Return what a daemon writes into a file of its state, once it has and all of `holding` is in it."""
        file = Path(member.state) / name
        with deadline(READY_WITHIN, f"{member.name} is not ready in time: see {member.home / 'log'}"):
            while True:
                text = file.read_text() if file.exists() else ""
                if text and all(part in text for part in holding):
                    return text
                await self._backend.check(self.testnet.members)
                await trio.sleep(LOOK_EVERY)

    async def _until_ready(self) -> None:
        waiting = self.testnet.nodes
        total = len(waiting)
        with deadline(READY_WITHIN, f"not all daemons are ready in time: see logs in {self.directory}"):
            while waiting:
                still = []
                for member in waiting:
                    described = await describe(member)
                    if not self._layout.is_ready(described):
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
