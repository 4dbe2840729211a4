"""Relays see when a tree is mended, and so when the owner of a box is there: a hole that is open.

A relay that lost its seat is known to all by the rosters. Those beside it are told by the owner, through the
host, at the next mending: or when the owner is back. What the host answers hides nothing of that.
"""

from __future__ import annotations

import pytest
import trio
from hosted_network import subscribed
from small_network import EPOCH_SECONDS, small_network


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [True, False])
async def test_relays_beside_one_that_left_are_told_when_the_owner_is_there(is_there: bool) -> None:
    async with small_network(relays=8) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        (planned,) = subscriber.route().planned.values()
        above = planned.installation.tree.parents
        leaf = next(relay for relay in net.relays if above.get(relay.id) is not None)
        await trio.sleep(2 * EPOCH_SECONDS)
        if not is_there:
            await subscriber.stop()
        told = net.count("parcels_opened")
        await leaf.stop()
        await trio.sleep(9 * EPOCH_SECONDS)
        assert (net.count("parcels_opened") > told) == is_there
        if not is_there:
            await subscriber.start()
            await trio.sleep(2 * EPOCH_SECONDS)
            assert net.count("parcels_opened") > told
