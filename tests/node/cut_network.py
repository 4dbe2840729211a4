"""A small network that its authority cuts into two shards, by real heads; daemons are real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from several_directories import Directories
from small_network import ONE, Node, SmallNetwork

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Topic

RELAYS = 10
SHARD_SIZE = 5  # relays of a shard in the mean: seven stay uncut


class CutNetwork(SmallNetwork):
    """A network of two shards, and what tests ask of its days."""

    @property
    def today(self) -> int:
        return self.calendar.day(self.now)

    def midnight(self, days: int = 1) -> float:
        """The end of today, or of a day after."""
        return self.calendar.day_start(self.today + days)

    def is_cut(self, day: int) -> bool:
        """Tell whether a day is cut, as the first client knows."""
        return self.clients[0].daemon.overlay.shards.is_cut(day)

    def directory_entry(self, node: Node) -> Address:
        """Where a relay that is up is, whatever shard lists it."""
        assert node.daemon.overlay.listener is not None
        return node.daemon.overlay.listener.address

    async def publish_until(self, moment: float, every: float, by: Node, topic: Topic = ONE) -> list[bytes]:
        """Publish now and then; return what was published."""
        sent = []
        while self.now < moment:
            sent.append(b"at %.1f" % self.now)
            await by.daemon.service.publish(topic, Content(sent[-1]))
            await trio.sleep(every)
        return sent


@asynccontextmanager
async def cut_network(
    relays: int = RELAYS,
    clients: int = 2,
    seed: int = 1,
    epoch: int = 60,
    probes: float = 0.0,
    keeping: KeepingRule = NOTHING_KEPT,
    **profile: Any,
) -> AsyncIterator[CutNetwork]:
    """Such a network, cut since its first head; with seven relays or fewer it is uncut.

    Each subscription sends so many `probes` an epoch.
    At the end no daemon may have met an error of its own program.
    """

    def directories(network: SmallNetwork, first_roster: int) -> Directories:
        return Directories(network, first_roster, 1, 1, shard_size=SHARD_SIZE, keeping=keeping)

    async with trio.open_nursery() as nursery:
        others = {"probes_an_epoch": probes, "directory": directories, **profile}
        net = CutNetwork(nursery, relays, clients, seed, epoch, **others)
        await net.up()
        yield net
        assert net.count("internal_errors") == 0
        nursery.cancel_scope.cancel()
