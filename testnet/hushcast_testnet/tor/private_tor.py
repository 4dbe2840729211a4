"""A private Tor network on this machine: started, waited for, and stopped by exactly what was started.

Its processes outlive whoever starts them; the `TorNetwork` returned is all it takes to stop them later.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec
import trio

from hushcast_runtime.files import private_directory, write_private
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.tor.control import open_control
from hushcast_runtime.tor.tor_watch import EVENTS, Progress, TorWatch
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import processes
from hushcast_testnet.processes import ProcessRecord
from hushcast_testnet.tor import distance_proxy, tor_network
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.distance_proxy import DOORS_FILE, FOLDER, DistanceOrder
from hushcast_testnet.tor.line_watch import WatchedLines
from hushcast_testnet.tor.tor_keys import find_program
from hushcast_testnet.tor.tor_network import PreparedNetwork, TorClient, TorNode

_NAME = "tor "  # before a node's name, in the name of its process
_LAUNCH_WITHIN = 15.0  # seconds from running tor to its pid file; measured 0.02
_LOOK_EVERY = 0.05  # seconds between looks at files of processes that report nowhere else
_VOTE_LATER = 200  # seconds; keeps authorities from voting before they are told to
_OFFSET = "TestingV3AuthVotingStartOffset"


@dataclass(frozen=True, slots=True)
class TorNetwork:
    """A running network, made of text and numbers alone so that the caller can keep it as JSON."""

    directory: str
    processes: tuple[ProcessRecord, ...]
    clients: tuple[TorClient, ...]
    snippet: str
    """Path of the torrc lines by which a daemon's own tor joins."""


def _ignore(percent: int, summary: str) -> None:
    pass


async def start(
    directory: Path,
    clients: int = 1,
    progress: Progress = _ignore,
    distance: Distance = NEAR,
    watched: WatchedLines | None = None,
) -> TorNetwork:
    """Build a network in `directory`, which must not exist, and start it; `clients` shared client tors.

    At a `distance` other than 0 its tors are connected by a proxy alone, which is one of its processes. It
    watches lines where some are `watched`: then the last client tors are theirs, in the order of their names.
    `progress` hears 0 to 70 percent. The caller sets the deadline (measured: 14 s on 2 cores). Raises
    `UsageError` when tor is missing or the directory exists, `TransportError` when a process fails. Whatever
    ends this function early, nothing is left running.
    """
    find_program("tor")
    starter = _Processes()
    with tor_network.held_ports(tor_network.ports_needed(clients, distance)) as ports:
        try:
            progress(0, "making keys")
            prepared = await tor_network.prepare(directory, ports, clients, distance=distance)
            if distance.ms:
                await starter.launch_proxy(order_proxy(prepared, distance, watched))
            await start_in_order(prepared, starter, progress)
        except BaseException:
            with trio.CancelScope(shield=True):
                await processes.stop([*starter.started.values(), *starter.proxies])
            raise
    return TorNetwork(
        str(prepared.directory),
        (*starter.started.values(), *starter.proxies),
        prepared.clients,
        str(prepared.snippet),
    )


def order_proxy(prepared: PreparedNetwork, distance: Distance, watched: WatchedLines | None = None) -> Path:
    """Write what the proxy before the doors of a network is to do; return the file, which it takes."""
    home = private_directory(prepared.directory / FOLDER)
    if watched is not None:
        own = prepared.client_nodes[len(prepared.client_nodes) - len(watched.names) :]
        tors = [str(node.directory / "pid") for node in own]
        watched = msgspec.structs.replace(watched, tors=tors)
    order = DistanceOrder(distance, prepared.doors, watched)
    write_private(home / DOORS_FILE, msgspec.json.encode(order))
    return home / DOORS_FILE


async def until_proxied(directory: Path) -> None:
    """Return when the proxy of this network has opened all doors; raise `TransportError` if it does not."""
    with trio.move_on_after(_LAUNCH_WITHIN):
        while proxy_of(directory) is None:  # noqa: ASYNC110 - a lock sets no event
            await trio.sleep(_LOOK_EVERY)
        return
    raise TransportError(f"the proxy between the tors did not start: see {directory / FOLDER / 'log'}")


def proxy_of(directory: Path) -> int | None:
    """Return the pid of the proxy between the tors of this network, `None` when none runs."""
    return holder(directory / FOLDER)


class Starter(Protocol):
    """Starts the tor of one node, and has it read its torrc again."""

    lead: int
    """Seconds from telling the authorities when to vote until they do."""

    async def launch(self, node: TorNode) -> None:
        """Start one node; raise `TransportError` if it does not start."""

    async def reload(self, nodes: Sequence[TorNode]) -> None:
        """Have nodes that run read their configuration again."""


async def start_in_order(prepared: PreparedNetwork, starter: Starter, progress: Progress) -> None:
    """Start authorities, relays and clients in the order that leaves nobody waiting for a retry.

    tor asks again for what was not there yet after 10 to 15 seconds: so the authorities vote only once they
    know every relay, relays are told when there is a consensus, and clients start when relays have it.
    """
    nodes = prepared.nodes
    _vote_in(prepared, _VOTE_LATER)
    progress(10, "starting relays")
    for node in nodes:
        await starter.launch(node)
    progress(20, "waiting for descriptors")
    for node in prepared.authorities:
        await _until(lambda node=node: _descriptors(node) >= len(nodes))  # type: ignore[misc]
    progress(40, "voting")
    _vote_in(prepared, starter.lead + prepared.voting)
    await starter.reload(prepared.authorities)
    for node in prepared.authorities:
        await _until((node.directory / "data" / "cached-microdesc-consensus").exists)
    progress(60, "waiting for relays")
    await starter.reload(prepared.relays)
    for node in prepared.relays:
        await _until((node.directory / "data" / "cached-microdescs.new").exists)
    progress(70, "starting clients")
    for node in prepared.client_nodes:
        await starter.launch(node)


class _Processes:
    """Implements `Starter` with processes of this machine."""

    lead = 1

    def __init__(self) -> None:
        self.started: dict[TorNode, ProcessRecord] = {}
        self.proxies: list[ProcessRecord] = []

    async def launch_proxy(self, order: Path) -> None:
        """Start the proxy that does what a file says, and wait for it."""
        command = [sys.executable, "-m", distance_proxy.__name__, str(order)]
        self.proxies.append(await processes.launch(FOLDER, command, order.with_name("log")))
        await until_proxied(order.parents[1])

    async def launch(self, node: TorNode) -> None:
        self.started[node] = await _launch(node)

    async def reload(self, nodes: Sequence[TorNode]) -> None:
        processes.send([self.started[node] for node in nodes], signal.SIGHUP)


def _vote_in(prepared: PreparedNetwork, seconds: float) -> None:
    """Set the time of the consensus; it is the remainder of the clock by the voting interval."""
    offset = math.ceil(time.time() + seconds) % tor_network.VOTING_INTERVAL
    for node in prepared.authorities:
        torrc = node.directory / "torrc"
        lines = [line for line in torrc.read_text().splitlines() if not line.startswith(_OFFSET)]
        torrc.write_text("\n".join([*lines, f"{_OFFSET} {offset}", ""]))


def _descriptors(authority: TorNode) -> int:
    """Return of how many relays the authority has a descriptor."""
    try:
        text = (authority.directory / "data" / "cached-descriptors.new").read_text(errors="replace")
    except FileNotFoundError:
        return 0
    return len({line.split()[1] for line in text.splitlines() if line.startswith("router ")})


async def _until(there: Callable[[], bool]) -> None:
    while not there():  # noqa: ASYNC110 - tor sets no event
        await trio.sleep(_LOOK_EVERY)


async def _launch(node: TorNode) -> ProcessRecord:
    # tor puts itself into the background, away from our streams and session. Not to be interrupted: between
    # its fork and our reading of the pid nobody could stop it.
    command = [find_program("tor"), "--ignore-missing-torrc"]
    command += ["--defaults-torrc", str(node.directory / "no-defaults"), "-f", str(node.directory / "torrc")]
    pid_file = node.directory / "pid"
    with trio.move_on_after(_LAUNCH_WITHIN) as scope, (node.directory / "output").open("wb") as output:
        scope.shield = True
        done = await trio.run_process(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode != 0:
            raise TransportError(f"tor {node.name} did not start: see {node.directory / 'output'}")
        await _until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    if scope.cancelled_caught:
        raise TransportError(f"tor {node.name} did not start in time: see {node.directory / 'log'}")
    process = processes.find(_NAME + node.name, int(pid_file.read_text()))
    if process is None:
        raise TransportError(f"tor {node.name} ended at once: see {node.directory / 'log'}")
    return process


async def relaunch(network: TorNetwork, process: ProcessRecord) -> TorNetwork:
    """Start a process of the network again that has ended, with its configuration and its state.

    Returns the network as it is now. Raises `TransportError` when it does not start.
    """
    name = process.name.removeprefix(_NAME)
    node = TorNode(name, Path(network.directory) / name)
    (node.directory / "pid").unlink(missing_ok=True)  # else it would be taken for the new one's
    started = await _launch(node)
    others = (known for known in network.processes if known != process)
    return replace(network, processes=(*others, started))


async def wait_ready(network: TorNetwork, progress: Progress = _ignore) -> None:
    """Return once every client tor has bootstrapped. `progress` hears 70 to 100 percent.

    The caller sets the deadline. Raises `TransportError` when a client tor is gone.
    """
    for number, client in enumerate(network.clients):

        def report(percent: int, summary: str, before: int = number) -> None:
            progress(70 + 30 * (100 * before + percent) // (100 * len(network.clients)), summary)

        await _bootstrapped(client, report)


async def _bootstrapped(client: TorClient, report: Progress) -> None:
    watch = TorWatch(report)
    async with open_control(client.endpoints()[0], watch.handle) as control:
        await control.set_events(*EVENTS)
        await watch.begin(control)
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                await control.lost.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(give_up)
            await watch.wait()
            nursery.cancel_scope.cancel()
        if control.lost.is_set():
            raise TransportError("a client tor of the private network has ended")
