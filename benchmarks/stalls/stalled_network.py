"""A network in which whoever attacks has two relays, and each of some daemons has a box at one of them.

Both relays, and the directory, are real and in the harness: what it does beyond theirs is to send signs of
life at moments of its own, to note when they are answered, and to answer drops with junk. The daemons are
processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import trio

from benchmarks.peers.installed import ROOT
from benchmarks.processes import ended
from benchmarks.relay.overlay import NETWORK
from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.boxes.box_links import OwnerLink
from hushcast_overlay.relay.identity import draw_identity
from hushcast_overlay.relay.strangers import Asked
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import RelayId, Wire
from hushcast_protocol.content.messages import MAX_BODY, TRAIL_SIZE, Message
from hushcast_protocol.overlay.frames import Drop, Forward, Ping
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Transport
from hushcast_testnet.tor.tor_network import TorClient

READY_WITHIN = 180.0  # seconds for daemons, and for boxes at our hosts, over Tor on a busy machine
TOPICS = 4  # subscribed to at once by a daemon that has no box at our hosts yet
BOX_WITHIN = 20.0  # seconds
GIVEN_UP = 30.0  # seconds for an answer, in which a link may end
SETTLED = 10.0  # seconds after the last subscription until its relays have been told
Daemon = subprocess.Popen[bytes]
JUNK = Forward(Message(bytes(32), 0, (bytes(16),), bytes(TRAIL_SIZE), os.urandom(MAX_BODY)))


class HostileHost:
    """A relay of the harness's own."""

    def __init__(self, daemon: NodeDaemon) -> None:
        """Take a daemon that runs and has a relay."""
        relay = daemon.overlay.relay
        assert relay is not None
        self.links = relay.box_links
        self.answers_junk = False
        self.dropped = trio.Event()
        """Set when a drop came that is answered with junk."""
        self.answered: dict[bytes, trio.Event] = {}
        strangers = relay.incoming._strangers
        acknowledged, answer = self.links.acknowledged, strangers.answer

        def hear(link: OwnerLink, number: int) -> None:
            acknowledged(link, number)
            if (waits := self.answered.pop(link.box, None)) is not None:
                waits.set()

        async def lie(frame: Asked) -> Wire:
            if not self.answers_junk or not isinstance(frame, Drop):
                return await answer(frame)
            self.dropped.set()
            return JUNK

        self.links.acknowledged = hear  # type: ignore[method-assign]
        strangers.answer = lie  # type: ignore[method-assign]


@dataclass(frozen=True)
class TimedBox:
    """A box at one of our hosts, whose owner's answers are timed."""

    host: HostileHost
    key: bytes

    async def answer(self) -> tuple[float, float]:
        """Send a sign of life; return when, and after how long it was answered, `GIVEN_UP` at most."""
        while (link := self.host.links._links.get(self.key)) is None:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(0.1)
        answered = self.host.answered[self.key] = trio.Event()
        began = trio.current_time()
        link.writer.post(Ping())
        with trio.move_on_after(GIVEN_UP):
            await answered.wait()
        return began, trio.current_time() - began


@dataclass(frozen=True)
class StalledNetwork:
    """What trials are made with."""

    hosts: Sequence[HostileHost]
    daemons: Sequence[Daemon]
    boxes: Sequence[TimedBox]
    """One of each daemon, in their order."""
    flooder: Daemon

    def stall(self, seconds: float) -> None:
        """Give all daemons the old fault, or take it from them."""
        for daemon in self.daemons:
            say(daemon, f"stall {seconds}")


def say(process: Daemon, line: str) -> None:
    """Say a line on the standard input of a process."""
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


class Making:
    """A network that is being made."""

    def __init__(
        self, directory: Path, transport: Transport, tors: Sequence[TorClient], count: int, are_clients: bool
    ) -> None:
        """`tors` are those of the daemons and, last, the flooder's; none over loopback tcp."""
        self._directory = directory
        self._transport = transport
        self._tors: Sequence[object] = [asdict(tor) for tor in tors] or [None] * (count + 1)
        self._count = count
        self._are_clients = are_clients
        self._relays = 2 if are_clients else 2 + count
        self._seed = Seed.draw(os.urandom)
        self._roll = Roll(NETWORK, self._seed, MemoryStore())
        self._address = Address("")
        self._hosts: list[HostileHost] = []
        self._known: list[RelayId] = []
        """The relays, in the order in which they came."""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[StalledNetwork]:
        """Run it."""
        with ExitStack() as stack:
            async with trio.open_nursery() as nursery:
                server = DirectoryServer(
                    system_environment(), self._transport, self._roll, SetOfOne(self._relays)
                )
                listener = await self._transport.listen(self._seed)
                self._address = listener.address
                nursery.start_soon(server.run, listener)
                await listener.published()
                hosts = [await self._host(nursery) for _ in range(2)]
                daemons = [await self._daemon(stack, number) for number in range(self._count)]
                with trio.fail_after(READY_WITHIN):
                    while not all(host.ready for host in hosts):  # noqa: ASYNC110 - they tell nobody
                        await trio.sleep(0.1)
                self._hosts = [HostileHost(host) for host in hosts]
                boxes = [await self._box(daemon, number) for number, daemon in enumerate(daemons)]
                roster = hosts[0].overlay.rosters.newest
                assert roster is not None
                relays = [(roster.relays[relay].address, relay.hex()) for relay in self._known[2:]]
                settings = json.dumps({"relays": relays, "tor": self._tors[-1]})
                flooder = self._run(stack, "flooder", "benchmarks.stalls.flooding", settings)
                with trio.fail_after(READY_WITHIN):
                    while not (self._directory / "flooder.log").stat().st_size:  # noqa: ASYNC110
                        await trio.sleep(0.1)
                await trio.sleep(SETTLED)
                yield StalledNetwork(self._hosts, daemons, boxes, flooder)
                nursery.cancel_scope.cancel()

    async def _host(self, nursery: trio.Nursery) -> NodeDaemon:
        pinned = PinnedDirectories.alone(self._address, self._seed.public())
        parts = OverlayParts(NETWORK, HARDENED, pinned, draw_identity(os.urandom))
        daemon = NodeDaemon(NodeParts(parts, system_environment(), self._transport, MemoryStore()))
        await nursery.start(daemon.run)
        await self._until_known()
        return daemon

    async def _daemon(self, stack: ExitStack, number: int) -> Daemon:
        settings = {
            "network": NETWORK.name,
            "epoch_seconds": NETWORK.epoch_seconds,
            "directory": self._address,
            "directory_key": self._seed.public().hex(),
            "store": str(self._directory / f"state-{number}.db"),
            "tor": self._tors[number],
            "is_client": self._are_clients,
        }
        module = "benchmarks.stalls.stalled_daemon"
        daemon = self._run(stack, f"daemon-{number}", module, json.dumps(settings))
        if not self._are_clients:
            await self._until_known()
        return daemon

    def _run(self, stack: ExitStack, name: str, *arguments: str) -> Daemon:
        log = stack.enter_context((self._directory / f"{name}.log").open("wb"))
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        return stack.enter_context(ended(stack.enter_context(process)))

    async def _until_known(self) -> None:
        """Wait until the directory knows one relay more."""
        with trio.fail_after(READY_WITHIN):
            while not (new := self._roll._descriptors.keys() - self._known):  # noqa: ASYNC110
                await trio.sleep(0.05)
        self._known += new

    async def _box(self, daemon: Daemon, number: int) -> TimedBox:
        """Have a daemon subscribe until one of its boxes is at a host of ours."""
        before = {key for host in self._hosts for key in host.links._links}
        with trio.fail_after(READY_WITHIN):
            for turn in count():
                for topic in range(TOPICS):
                    say(daemon, f"subscribe topic {number} {turn} {topic}")
                with trio.move_on_after(BOX_WITHIN):
                    while True:
                        for host in self._hosts:
                            for key in host.links._links.keys() - before:
                                if host.links._boxes.standing(key)[0]:  # it holds a lease: it is no attempt
                                    return TimedBox(host, key)
                        await trio.sleep(0.1)
        raise AssertionError("it counts for ever")
