"""The inventory of a testnet, which `up` writes to disk for all other commands; and how to ask a daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import trio

import hushcast
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.program import program_called
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import processes
from hushcast_testnet.containers.compose import Containers
from hushcast_testnet.path_proxy import PathProcess
from hushcast_testnet.processes import ProcessRecord
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.private_tor import TorNetwork

Transport = Literal["tor", "tcp"]
CarrierName = Literal["overlay", "central", "brokers"]
FILE = "testnet.json"
TOR = "tor"  # the private Tor network's folder
CONTROL_SOCKET = "control.sock"


class Member(msgspec.Struct, frozen=True):
    """One daemon of a testnet; paths are absolute."""

    name: str
    role: str
    """What its configuration says as role, or a program's name without one."""
    config: str
    state: str
    socket: str | None
    address: str | None = None
    host: str | None = None
    """Its own loopback address, where connections pass a relay."""
    clock: str | None = None
    """The file by which its clock can be set wrong."""
    container: str | None = None

    @property
    def home(self) -> Path:
        """Its own directory, with its configuration, log and state."""
        return Path(self.config).parent

    @property
    def is_node(self) -> bool:
        """Whether applications publish and subscribe at it; all others serve these."""
        return self.role in ("relay", "client")


class GatewayMember(msgspec.Struct, frozen=True):
    """One MQTT gateway of a testnet; paths are absolute."""

    name: str
    daemon: str
    """The name of the daemon that it goes through."""
    config: str
    state: str
    port: int
    """On loopback."""
    socket: str


MemberT = TypeVar("MemberT", Member, GatewayMember)


class Testnet(msgspec.Struct, frozen=True):
    """What `up` leaves in the testnet's directory for `status` and `down`."""

    transport: Transport
    epoch: int
    began: float
    members: list[Member]
    tor: TorNetwork | None
    path: PathProcess | None = None
    breakable: bool = False
    containers: Containers | None = None
    gateways: list[GatewayMember] = []
    carrier: CarrierName = "overlay"
    distance: Distance = NEAR

    @property
    def nodes(self) -> list[Member]:
        """The daemons that applications publish and subscribe at."""
        return [member for member in self.members if member.is_node]


def load(directory: Path) -> Testnet:
    """Read what `up` left in a directory; raise `UsageError` if that is nothing of ours.

    It names what `down` ends and `chaos` breaks: what another user wrote, say in /tmp, could name any.
    """
    try:
        with (directory / FILE).open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                raise UsageError(f"{directory / FILE} is another user's, who alone can end that testnet")
            return msgspec.json.decode(file.read(), type=Testnet)
    except FileNotFoundError:
        raise UsageError(f"there is no testnet in {directory}: `hushcast testnet up` makes one") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{directory / FILE} is not a testnet of this version: {error}") from None


async def start(member: Member) -> ProcessRecord:
    """Start a daemon of a testnet with its configuration."""
    command = [sys.executable, *_arguments(member)]
    return await processes.launch(member.name, command, member.home / "log")


def running(testnet: Testnet) -> list[ProcessRecord]:
    """Return the processes of a testnet's daemons: those that `start` made and those that hold its state.

    The one that was started a moment ago holds nothing yet; one that was started by hand has another command.
    """
    return running_of(testnet.members, _arguments)


def running_of(
    members: Sequence[MemberT], arguments: Callable[[MemberT], tuple[str, ...]]
) -> list[ProcessRecord]:
    """Return the processes of some members, which have these `arguments`, as `running` does."""
    found = set(processes.find_by_command({arguments(member): member.name for member in members}))
    for member in members:
        pid = holder(Path(member.state))
        if pid is not None and (process := processes.find(member.name, pid)) is not None:
            found.add(process)
    return sorted(found, key=lambda process: process.pid)


def _arguments(member: Member) -> tuple[str, ...]:
    return ("-m", *run_by(member.role), member.config)


def run_by(role: str) -> tuple[str, ...]:
    """Return the module that runs a daemon of this role, and the words before its configuration."""
    return program_called(role).module


def away(testnet: Testnet) -> list[str]:
    """Return the names of the daemons that serve the nodes, and do not run."""
    return [m.name for m in testnet.members if not m.is_node and holder(Path(m.state)) is None]


def is_down(testnet: Testnet) -> bool:
    """Tell whether none of a testnet's daemons runs."""
    return all(holder(Path(member.state)) is None for member in testnet.members)


async def describe(member: Member) -> dict[str, Any]:
    """Return the daemon's status, empty while it cannot be asked."""
    assert member.socket is not None
    try:
        async with hushcast.connect(member.socket, timeout=None, reconnect=False) as daemon:
            return await daemon.status()
    except hushcast.HushcastError:
        return {}


@contextmanager
def deadline(seconds: float, otherwise: str) -> Iterator[None]:
    """Raise `TransportError` with the text `otherwise` if what is inside takes longer."""
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise TransportError(otherwise) from None
