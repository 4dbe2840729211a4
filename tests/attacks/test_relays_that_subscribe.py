"""Where messages are kept, relays see the same of a relay that subscribes whether it is there or away.

Nobody in a tree is told of it. Its host asks keepers at the same moments; what the owner does itself is an
audit, one question a day under no name, at a moment drawn for that day alone.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
import trio
from hosted_network import drop_everywhere, hosted_elsewhere
from kept_network import kept_network, questions
from small_network import EPOCH_SECONDS

from hushcast_protocol.overlay.profile import Root

pytestmark = pytest.mark.slow

RELAYS = 9
EPOCHS = 14  # of one day


class Seen(NamedTuple):
    """What other relays see."""

    of_hosts: set[int]
    """How often keepers of the topic are asked for each epoch."""
    of_days: int
    """Questions for whole days, which an owner asks, and a host that is new."""
    parcels: int
    leases: int


async def seen(stays: bool, seed: int) -> Seen:
    async with kept_network(RELAYS, clients=0, seed=seed, root=Root.HOST, probes_an_epoch=None) as net:
        reader = await hosted_elsewhere(net)
        trunk = (await reader.route().wanted.tokens(net.calendar.day(net.now))).trunk
        await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 4))
        asked, first = questions(net), net.calendar.epoch(net.now) - 1
        if not stays:
            await reader.stop()
        for _ in range(EPOCHS):
            await drop_everywhere(net, b"one", b"two")
            await trio.sleep(EPOCH_SECONDS)
            if not stays and not reader.is_up and net.env.uniform(0.0, 1.0) < 0.3:
                await reader.start()  # nor when it is back
        by_others = [(name, one) for _, name, one in asked if name != reader.name and one.trunk == trunk]
        counts = Counter((name, one.epoch) for name, one in by_others)
        over = range(first, first + EPOCHS - 1)  # the last may be asked for later
        of_hosts = {counts[name, epoch] for name, _ in by_others for epoch in over}
        of_days = sum(one.epoch is None for _, one in by_others)
        return Seen(of_hosts, of_days, net.count("parcels_opened"), sum(net.leases().values()))


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_relays_see_is_the_same_whether_the_owner_is_there_away_or_back(seed: int) -> None:
    there, away = await seen(True, seed), await seen(False, seed)
    assert there.of_hosts == away.of_hosts == {1}
    assert there.parcels == away.parcels == there.leases == away.leases == 0
    assert max(there.of_days, away.of_days) <= 1
