"""Days on which something is published, for daemons that are away meanwhile."""

from __future__ import annotations

from typing import Any

import trio
from small_network import DAY_SECONDS, ONE

from hushcast_protocol.content.bodies import Content


def cursor(node: Any) -> int:
    """How many messages a daemon's one subscription has shown, each counted once."""
    [held] = node.daemon.service.subscriptions()
    return int(held["cursor"])


async def publish_for(node: Any, days: int, a_day: int) -> None:
    for day in range(days):
        for number in range(a_day):
            await node.daemon.service.publish(ONE, Content(b"%d %d" % (day, number)))
        await trio.sleep(DAY_SECONDS)
