"""Daemons as processes of this machine, over a private Tor network or loopback."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import trio

from hushcast_runtime.files import private_directory
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet import path_proxy, processes
from hushcast_testnet.builder import (
    LOOK_EVERY,
    READY_WITHIN,
    Keep,
    Progress,
    last_line,
    quoted,
)
from hushcast_testnet.inventory import CONTROL_SOCKET, TOR, Member, Testnet, Transport, deadline, start
from hushcast_testnet.path_proxy import PathProcess
from hushcast_testnet.processes import ProcessRecord
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.line_watch import ObservedLinks, WatchedLines
from hushcast_testnet.tor.private_tor import TorNetwork

TOR_WITHIN = 180.0  # seconds for the private Tor network; measured 14 to 52


class ProcessBackend:
    """Implements `Backend` with processes; a breakable `tcp` testnet gets a proxy on its path."""

    def __init__(
        self,
        directory: Path,
        transport: Transport,
        breakable: bool,
        distance: Distance = NEAR,
        observe_links: ObservedLinks = "none",
    ) -> None:
        """Those whose links are observed have each a tor of their own, whose line the proxy watches."""
        self.transport: Transport = transport
        self.longest_socket = CONTROL_SOCKET
        self._directory = directory
        self._breakable = breakable
        self._distance = distance
        self._observe_links = observe_links
        self._tor_of: dict[str, int] = {}
        self._placed = 0
        self._started: dict[str, ProcessRecord] = {}
        self._tor: TorNetwork | None = None
        self._path: PathProcess | None = None

    async def prepare(
        self, testnet: Testnet, members: Sequence[Member], keep: Keep, progress: Progress
    ) -> None:
        """Start the private Tor network, or the proxy on the path, if there is to be one."""
        if self.transport == "tor":
            self._tor = await self._start_tor(testnet, members, keep, progress)
        elif self._breakable:
            self._path = await self._start_path(keep)

    async def _start_tor(
        self, testnet: Testnet, members: Sequence[Member], keep: Keep, progress: Progress
    ) -> TorNetwork:
        lines = None
        watched = [one.name for one in members if self._observe_links in ("all", f"{one.role}s")]
        shared = 0 if len(watched) == len(members) else 1  # tors: those of daemons alone follow
        if watched:
            self._tor_of = {name: number for number, name in enumerate(watched, shared)}
            lines = WatchedLines(str(self._directory / "traces"), testnet.began, testnet.epoch, watched)

        def report(percent: int, summary: str) -> None:
            progress(f"private Tor network: {percent} %, {summary}")

        with deadline(TOR_WITHIN, "the private Tor network is not ready in time"):
            network = await private_tor.start(
                self._directory / TOR, shared + len(watched), report, self._distance, lines
            )
            keep(tor=network, distance=self._distance)
            await private_tor.wait_ready(network, report)
        return network

    async def _start_path(self, keep: Keep) -> PathProcess:
        home = private_directory(self._directory / "path")
        process = await processes.launch(
            "path", [sys.executable, "-m", path_proxy.__name__, str(home)], home / "log"
        )
        file = home / path_proxy.PORT_FILE
        relay = PathProcess(process, "", str(home / path_proxy.CONTROL))
        keep(path=relay)
        with deadline(READY_WITHIN, f"the proxy on the path is not ready: see {home / 'log'}"):
            while not file.exists():
                if not processes.is_running(process):
                    raise TransportError(f"the proxy on the path ended: {last_line(home / 'log')}")
                await trio.sleep(LOOK_EVERY)
        relay = msgspec.structs.replace(relay, address=f"{LOOPBACK}:{file.read_text()}")
        keep(path=relay)
        return relay

    def place(self, member: Member) -> Member:
        """Give the daemon a loopback address of its own where connections pass a relay."""
        if self._path is None or member.role == "directory":
            return member
        number, self._placed = self._placed, self._placed + 1
        return msgspec.structs.replace(member, host=f"127.77.{number // 250}.{number % 250 + 1}")

    def settings(self, member: Member) -> list[str]:
        """Return the section `[tor]`: all share one, but those whose lines are watched."""
        if self._tor is None:
            return []
        client = self._tor.clients[self._tor_of.get(member.name, 0)]
        doors = [f"control = {quoted(client.control)}", f"socks = {quoted(client.socks)}"]
        return ["[tor]", 'mode = "system"', *doors]

    def testnet_settings(self, member: Member) -> list[str]:
        """Return the way by the proxy on the path."""
        if self._path is None:
            return []
        return [f"host = {quoted(member.host)}", f"path = {quoted(self._path.address)}"]

    async def launch(self, member: Member) -> None:
        """Start the process."""
        self._started[member.name] = await start(member)

    async def reload(self, member: Member) -> None:
        """Send the signal for it."""
        processes.send([self._started[member.name]], signal.SIGHUP)

    async def restart(self, member: Member) -> None:
        """Stop the process and start another."""
        await processes.stop([self._started[member.name]])
        await self.launch(member)

    async def check(self, members: Sequence[Member]) -> None:
        """Raise `TransportError` if one has ended."""
        for member in members:
            if not processes.is_running(self._started[member.name]):
                raise TransportError(f"{member.name} ended: {last_line(member.home / 'log')}")
        for process in self._tor.processes if self._tor else ():
            if not processes.is_running(process):
                raise TransportError(f"{process.name} ended: see its log in {self._directory / TOR}")
