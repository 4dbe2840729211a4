"""Figure: bytes that a node sends for a steady stream of small messages, against the ideal.

A simulated network under a mock clock: real daemons, every byte of their streams counted, directory included
where daemons ask it. What Tor adds to each byte is the same for all and not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

import trio
import trio.testing

from benchmarks.figures import Effort, Figure, at_most
from hushcast_directory.client.pinned_directories import PinnedDirectories, RosterChecks
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_local.inbox_records import ReportedGap
from hushcast_local.service import InboxFeed
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_protocol.overlay.profile import HARDENED, Profile
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Listener, StreamHandler
from hushcast_runtime.transports.memory import MemoryNetwork, MemoryTransport

NODES, SUBSCRIBERS = 100, 10
SECONDS = 600  # of one message each
PAYLOAD = PADDED = 1024  # bytes
DELAY = 0.1  # virtual seconds one way
NETWORK = Network("bench", HARDENED.name, 3600)
BEGIN = 3600 * (24 * 10_000 + 2.2)
_TOPIC = parse_topic("bench")


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once for each number of origins: the same seed gives the same bytes."""
    seconds = effort.amount(SECONDS)
    for origins, target in ((HARDENED.origins, 3.0), (1, None)):
        clock = trio.testing.MockClock(autojump_threshold=0)
        stream = _Stream(replace(HARDENED, origins=origins), seconds)
        sent = trio.run(stream.run, clock=clock)
        name = (
            f"bytes a node sends a second for {PAYLOAD:,} a second to {SUBSCRIBERS} of {NODES}, dropped at"
            f" {origins}: at most times"
        )
        yield at_most(name, sent, "the ideal for one origin", stream.ideal, target)


class Meter:
    """Counts the bytes that daemons send."""

    def __init__(self) -> None:
        self.sent = 0


class _MeteredStream(trio.abc.Stream):
    """A stream whose bytes sent are counted."""

    def __init__(self, inner: trio.abc.Stream, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._meter.sent += len(data)
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._inner.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _MeteredListener:
    """A listener of metered streams."""

    def __init__(self, inner: Listener, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter
        self.address = inner.address

    async def serve(self, handler: StreamHandler) -> None:
        await self._inner.serve(lambda stream: handler(_MeteredStream(stream, self._meter)))

    async def published(self) -> None:
        await self._inner.published()

    async def aclose(self) -> None:
        await self._inner.aclose()


class _MeteredTransport:
    """The memory transport of one daemon, metered."""

    def __init__(self, inner: MemoryTransport, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        return _MeteredListener(await self._inner.listen(seed, previous), self._meter)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        self._meter.sent += len(ahead)
        return _MeteredStream(await self._inner.connect(address, isolation, ahead), self._meter)


class _Stream:
    """One network and one stream of messages."""

    def __init__(self, profile: Profile, seconds: int) -> None:
        self._profile = profile
        self._seconds = seconds
        self._meter = Meter()
        self._wires = MemoryNetwork(lambda: DELAY)
        self._seed = Seed.draw(simulated_environment("directory").randomness)
        self._derive = functools.cache(topic_key)
        self._checks = RosterChecks(functools.cache(check_roster))
        self._delivered = 0
        self.ideal = 0.0
        """Bytes a node and second, k·r·(padded size)/N.

        k is the mean way to a subscriber in transmissions: along the tree, and one from its host.
        """

    async def run(self) -> float:
        """Return the bytes that a node sends in a second."""
        async with trio.open_nursery() as nursery:
            directory = await self._start_directory(nursery)
            daemons = [self._daemon(number, directory) for number in range(NODES)]
            for daemon in daemons:
                await nursery.start(daemon.run)
            while not all(daemon.ready for daemon in daemons):  # noqa: ASYNC110 - a mock clock
                await trio.sleep(1)
            for daemon in daemons[:SUBSCRIBERS]:
                nursery.start_soon(self._listen, await daemon.service.subscribe(Interest(_TOPIC)))
            self.ideal = self._way(daemons) * SUBSCRIBERS * PADDED / NODES
            await self._publish(daemons[-1], 10)  # links open
            before = self._meter.sent
            await self._publish(daemons[-1], self._seconds)
            sent = self._meter.sent - before
            if self._delivered != SUBSCRIBERS * (self._seconds + 10):
                raise RuntimeError(f"{self._delivered} deliveries are not all")
            nursery.cancel_scope.cancel()
        return sent / self._seconds / NODES

    async def _start_directory(self, nursery: trio.Nursery) -> Address:
        env = simulated_environment("directory", BEGIN)
        roll, sitting = Roll(NETWORK, self._seed, MemoryStore()), SetOfOne(NODES)
        transport = self._wires.transport()
        listener = await transport.listen(self._seed)
        server = DirectoryServer(env, transport, roll, sitting)
        nursery.start_soon(server.run, listener)
        return listener.address

    def _daemon(self, number: int, directory: Address) -> NodeDaemon:
        env = simulated_environment(f"daemon {number}", BEGIN)
        return NodeDaemon(
            NodeParts(
                OverlayParts(
                    NETWORK,
                    self._profile,
                    PinnedDirectories.alone(directory, self._seed.public()),
                    draw_identity(env.randomness),
                    self._checks,
                ),
                env,
                _MeteredTransport(self._wires.transport(), self._meter),
                MemoryStore(),
                derive=self._derive,
            )
        )

    async def _listen(self, feed: InboxFeed) -> None:
        while (arrival := await feed.next()) is not None:
            assert not isinstance(arrival, ReportedGap)
            feed.shown(arrival[0])
            self._delivered += 1

    async def _publish(self, daemon: NodeDaemon, count: int) -> None:
        for number in range(count):
            began = trio.current_time()
            await daemon.service.publish(_TOPIC, Content(number.to_bytes(PAYLOAD, "big")))
            await trio.sleep(max(0.0, began + 1 - trio.current_time()))
        await trio.sleep(5)  # the last ones arrive

    @staticmethod
    def _way(daemons: list[NodeDaemon]) -> float:
        steps = []
        for daemon in daemons[:SUBSCRIBERS]:
            for route in daemon.overlay.routes.held:
                tree = next(iter(route.planned.values())).installation.tree
                steps += [tree.path_length(relay) + 1 for relay in tree.parents]
        return sum(steps) / len(steps)
