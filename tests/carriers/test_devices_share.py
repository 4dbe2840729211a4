"""Two devices of one person among real daemons, on each carrier: they come to share, through a crash."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from broker_daemons import tree_of_daemons
from daemons import daemons
from small_network import EPOCH_SECONDS, ONE, small_network, until

from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.topics import Interest, make_topic

FAMILY = make_topic("family", (), TopicSecret(bytes(range(32))))
SHARED_WITHIN = (FOLLOWED_WITHIN + 4.0) * EPOCH_SECONDS  # a beat or two, and until what they tell begins
ONE_EDGE = (("edge", "edge", "root"),)
CARRIERS = [
    pytest.param(small_network, id="overlay"),
    pytest.param(daemons, id="central"),
    pytest.param(functools.partial(daemons, profile="paper"), id="central as published"),
    pytest.param(functools.partial(tree_of_daemons, rows=ONE_EDGE), id="brokers"),
    pytest.param(functools.partial(tree_of_daemons, rows=ONE_EDGE, profile="full/3/apart"), id="layers"),
]


def topics(node: Any) -> set[str]:
    return {one["topic"] for one in node.daemon.service.subscriptions()}


@pytest.mark.slow
@pytest.mark.parametrize("opened", CARRIERS)
async def test_devices_share_on_every_carrier(
    opened: Callable[[], AbstractAsyncContextManager[Any]],
) -> None:
    async with opened() as net:
        one, two = net.clients if hasattr(net, "clients") else net.nodes
        link, _ = await one.daemon.service.devices.invite("laptop")
        await two.daemon.service.devices.join(link, "phone")
        await one.daemon.service.subscribe(Interest(FAMILY))
        await two.daemon.service.subscribe(Interest(ONE))
        await until(lambda: topics(one) == topics(two) == {"family", ONE.name}, SHARED_WITHIN)
        await two.stop()
        await one.daemon.service.unsubscribe(ONE)
        await trio.sleep(EPOCH_SECONDS)
        await two.start()
        await until(lambda: topics(one) == topics(two) == {"family"}, SHARED_WITHIN)
        names = [[told["name"] for told in node.daemon.service.devices.describe()] for node in (one, two)]
        assert names == [["laptop", "phone"]] * 2
