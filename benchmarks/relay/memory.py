"""Figure: the memory of an idle daemon when many of them share one process and one roster.

As a program, `python -m benchmarks.relay.memory N`, it prints the bytes that each of N daemons takes.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator

import trio
import trio.testing

from benchmarks.figures import Effort, Figure, alternate, at_most
from benchmarks.processes import printed_by, resident
from hushcast_directory.client.pinned_directories import CHECKS, PinnedDirectories, RosterChecks
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.identity import Identity, draw_identity
from hushcast_overlay.shards.shard_reader import READING, ShardReader
from hushcast_protocol.authorities.directory_requests import (
    MAX_DIRECTORY_REQUEST,
    DirectoryAnswer,
    DirectoryRequest,
    Fetch,
    RelayRegistered,
    Rosters,
    decode_directory_request,
)
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import (
    GENESIS,
    Descriptor,
    Network,
    Relay,
    RosterBody,
    RosterEntry,
    SignedRoster,
    check_roster,
    sign_descriptor,
    sign_roster,
)
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.memory import CallAt, MemoryNetwork

DAEMONS = 10_000
LIMIT = 100.0  # kilobytes a daemon
NETWORK = Network("bench", HARDENED.name, 24 * 3600)
BEGIN = NETWORK.calendar.day_start(400) + 3600.0  # early on a day: nobody installs the next one yet
_SIGNED = Signed(b"the roster that all share", bytes(64))


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure each time in a fresh process: memory once taken is not given back."""
    daemons = effort.amount(DAEMONS)
    # Memory repeats to a percent, and the full number takes half a minute: fewer runs than for times.
    runs = effort.runs if effort.share < 1 else 1
    size = alternate(runs, {"ours": lambda: printed_by("benchmarks.relay.memory", str(daemons))})["ours"]
    yield at_most(
        f"memory of an idle relay among {daemons:,} in one process, kB: at most times",
        size / 1000,
        "the bound",
        LIMIT,
        1,
    )


class Daemons:
    """Relays over the memory transport, and a directory that lists all of them from the start."""

    def __init__(self, count: int, call_at: CallAt | None = None) -> None:
        self._wires = MemoryNetwork(call_at=call_at)
        self._env = simulated_environment("directory", BEGIN)
        self.seed = Seed.draw(self._env.randomness)
        self._identities = [
            draw_identity(simulated_environment(f"identity {number}").randomness) for number in range(count)
        ]
        relays = dict(map(_listed, self._identities))
        epoch = NETWORK.calendar.epoch(BEGIN)
        self._roster = SignedRoster(NETWORK, epoch, GENESIS, bytes(32), relays, _SIGNED)
        self._answered = self._signed = _SIGNED  # what they are shown is not looked at
        self.held: list[NodeDaemon] = []
        self._derive = functools.cache(topic_key)  # once for all: it is dear by intent

    def checks(self) -> RosterChecks:
        """Return how daemons check rosters: there is one, which all hold."""
        return RosterChecks(lambda *_: self._roster)

    def reading(self) -> ShardReader:
        """Return how daemons read parts of a network in shards."""
        return READING

    def store(self) -> MemoryStore:
        """Return the disk of a daemon."""
        return MemoryStore()

    async def start(self, nursery: trio.Nursery) -> None:
        """Start all, and return when they are registered and hold the roster."""
        listener = await self._wires.transport().listen(self.seed)
        nursery.start_soon(listener.serve, self._answer)
        for number, identity in enumerate(self._identities):
            self.held.append(self._daemon(f"daemon {number}", identity))
            await nursery.start(self.held[-1].run)
        while not all(daemon.ready for daemon in self.held):  # noqa: ASYNC110 - a mock clock: waiting is free
            await trio.sleep(1)
        await trio.sleep(60)

    def sign(self) -> None:
        """Have the directory sign the roster that whoever joins is shown; before any is started."""
        entries = tuple(RosterEntry(described(identity)[1], 0) for identity in self._identities)
        self._signed = sign_roster(self.seed, RosterBody(NETWORK, self._roster.epoch, GENESIS, entries))
        self._roster = check_roster(self._signed, self.seed.public(), NETWORK)

    async def join(self, nursery: trio.Nursery) -> NodeDaemon:
        """Return a client that has just come, and holds a roster; it fetches and checks what any does.

        A directory alone has signed one: `sign`.
        """
        self._answered = self._signed
        client = self._daemon("client", None, CHECKS, READING)
        await nursery.start(client.run)
        if not client.ready:
            await client.overlay.rosters.changed()
        return client

    def _daemon(
        self,
        name: str,
        identity: Identity | None,
        checks: RosterChecks | None = None,
        reading: ShardReader | None = None,
    ) -> NodeDaemon:
        key = self.seed.public()
        return NodeDaemon(
            NodeParts(
                OverlayParts(
                    NETWORK,
                    HARDENED,
                    PinnedDirectories.alone(memory_address(key), key),
                    identity,
                    checks or self.checks(),
                    reading or self.reading(),
                ),
                simulated_environment(name, BEGIN),
                self._wires.transport(),
                self.store(),
                derive=self._derive,
            )
        )

    def counted(self, name: str) -> int:
        """Return what a counter says at all daemons together."""
        return sum(daemon.counters[name] for daemon in self.held)

    async def _answer(self, stream: trio.abc.Stream) -> None:
        link = Link.respond(NETWORK.id, self.seed, self._env.randomness, MAX_DIRECTORY_REQUEST)
        channel, _ = await accept_channel(stream, link, decode_directory_request)
        request = await channel.one(60)
        await channel.send(self.answer(request))
        await channel.finish()

    def answer(self, request: DirectoryRequest) -> DirectoryAnswer:
        """Return what the directory answers."""
        return Rosters(self._answered, False) if isinstance(request, Fetch) else RelayRegistered()


def _listed(identity: Identity) -> tuple[bytes, Relay]:
    relay = identity.seed.public()
    address = memory_address(identity.service.public())
    return relay, Relay(relay, address, identity.parcel_key.public(), 0)


def described(identity: Identity) -> tuple[Descriptor, Signed]:
    """Return what a relay says of itself, and as it signs that."""
    begin, service = int(BEGIN), identity.service.public()
    body = Descriptor(
        NETWORK.id,
        identity.seed.public(),
        memory_address(service),
        identity.parcel_key.public(),
        begin,
        begin + 2 * NETWORK.epoch_seconds,
        0,
    )
    return body, sign_descriptor(identity.seed, body)


async def _measure(count: int) -> float:
    async with trio.open_nursery() as warming:
        await Daemons(3).start(warming)  # what the first ones load is not paid by each
        warming.cancel_scope.cancel()
    before = resident()
    daemons = Daemons(count)  # its roster is counted, too
    async with trio.open_nursery() as nursery:
        await daemons.start(nursery)
        size = (resident() - before) / count
        nursery.cancel_scope.cancel()
    return size


if __name__ == "__main__":
    configure_logs("error", False)
    gc.set_threshold(100_000, 50, 1000)
    clock = trio.testing.MockClock(autojump_threshold=0)
    print(trio.run(_measure, int(sys.argv[1]), clock=clock))
