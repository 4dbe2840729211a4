"""A small network with cover, a daemon that publishes under it, and what is seen at that daemon's line."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import trio
from lettered_network import ROUND, lettered_network
from small_network import ONE, Ear, Node, SmallNetwork, until

from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.routes.cover.cover_rounds import CoverRounds
from hushcast_overlay.routes.cover.kept_lanes import Lane
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.cover import porter_queue
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_runtime.storage.store import Store
from hushcast_runtime.transports.base import Listener, Transport

SEEN_AFTER = 40 * ROUND  # seconds from a publication to its receipt, where nothing is lost, at the most


@dataclass(frozen=True)
class Sight:
    """Bytes of one write or read at a daemon's line."""

    at: float
    to: Address
    sent: int
    received: int


class _SeenStream(trio.abc.Stream):
    def __init__(self, inner: trio.abc.Stream, line: Line, to: Address) -> None:
        self._inner, self._line, self._to = inner, line, to

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._line.seen.append(Sight(self._line.network.now, self._to, len(data), 0))
        await self._inner.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._inner.receive_some(max_bytes)
        self._line.seen.append(Sight(self._line.network.now, self._to, 0, len(data)))
        return data

    async def aclose(self) -> None:
        await self._inner.aclose()


class Line:
    """A daemon's line, as whoever watches it sees it; implements `Transport` around another."""

    def __init__(self, network: SmallNetwork) -> None:
        self.network = network
        self.inner: Transport | None = None
        self.seen: list[Sight] = []
        self.opened: list[tuple[float, Address]] = []
        self.takes = 0.0
        """Seconds that a connection to a relay takes to open, beside those of the network."""

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        raise AssertionError("a daemon under cover has no address")

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        assert self.inner is not None
        self.opened.append((self.network.now, address))
        self.seen.append(Sight(self.network.now, address, len(ahead), 0))
        if str(address) not in directories(self.network):
            await trio.sleep(self.takes)
        return _SeenStream(await self.inner.connect(address, isolation, ahead), self, address)

    def between(self, begin: float, end: float) -> list[Sight]:
        """What was seen meanwhile, at whatever relay or directory."""
        return [one for one in self.seen if begin <= one.at < end]

    def opened_at(self) -> Counter[Address]:
        """How often whom it connected to."""
        return Counter(address for _, address in self.opened)


class CoveredNode(Node):
    """A daemon under cover."""

    def __init__(self, network: SmallNetwork, name: str, store: Store | None = None) -> None:
        super().__init__(network, name, is_relay=False, store=store)
        self.hold = HoldRule.ALWAYS
        self.reads = False
        self.line = Line(network)

    def made(self, parts: NodeParts) -> NodeDaemon:
        assert isinstance(parts.carrier, OverlayParts)
        self.line.inner = parts.transport
        carrier = replace(parts.carrier, cover=self.hold, reads_under_cover=self.reads)
        return super().made(replace(parts, carrier=carrier, transport=self.line))

    async def reading(self, topic: Topic = ONE) -> Ear:
        """Subscribe under cover, which nobody waits for, and collect what comes."""
        interest = Interest(topic, parse_where("", topic.attributes))
        return Ear(self.network, await self.daemon.service.subscribe(interest))

    @property
    def lanes(self) -> list[Lane]:
        """Its three lanes, as it keeps them."""
        kept: Any = self.rounds._reader
        return list(kept._lanes.lanes)

    @property
    def rounds(self) -> CoverRounds:
        rounds = self.daemon.overlay._rounds
        assert rounds is not None
        return rounds

    @property
    def chain(self) -> Any:
        """Its porter, second and third, as it keeps them."""
        kept: Any = self.rounds._chain
        return kept.held.chain

    @property
    def told(self) -> dict[str, Any]:
        """What `hushcast status` has of its cover."""
        told: dict[str, Any] = self.daemon.status()["cover"]
        return told

    async def publish(self, payload: bytes, next_round: bool = True) -> bytes:
        """Publish at once, or held; return the id once it is on disk."""
        publication = await self.daemon.service.enqueue(ONE, Content(payload), next_round=next_round)
        return publication.id

    async def begun(self) -> None:
        """Wait until its letters are passed."""
        within = 24 * self.network.epoch + 4 * ROUND
        await until(lambda: self.told["begins_in"] == 0 and self.told["rounds"] > 0, within, "letters pass")

    async def all_listed(self, within: float = SEEN_AFTER) -> None:
        """Wait until nothing waits for a receipt."""
        await until(lambda: not self.daemon.service.outbox(), within, "all has its receipt")


def directories(net: SmallNetwork) -> set[str]:
    """The addresses of the directories."""
    return {member.address for member in net.directory.directories().members}


@asynccontextmanager
async def covered_authors(
    count: int, reads: bool = False, **others: Any
) -> AsyncIterator[tuple[SmallNetwork, list[CoveredNode]]]:
    """A network with cover and so many authors under it, whose letters are passed.

    The porter begins in the next round, and not after a while drawn up to a day.
    """
    async with lettered_network(**others) as net:
        authors = [CoveredNode(net, f"author {number}") for number in range(count)]
        for author in authors:
            author.reads = reads
        net.nodes += authors
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(porter_queue, "below", lambda *_: 1)
            async with trio.open_nursery() as nursery:
                for author in authors:
                    nursery.start_soon(author.start)
            for author in authors:
                await author.begun()
        yield net, authors


@asynccontextmanager
async def covered_network(**others: Any) -> AsyncIterator[tuple[SmallNetwork, CoveredNode]]:
    """The same with one author."""
    async with covered_authors(1, **others) as (net, (author,)):
        yield net, author
