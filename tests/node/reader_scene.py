"""A reader under cover as tests see it: how long until it is told, has a lane, and hears."""

from __future__ import annotations

from typing import Any

from covered_network import CoveredNode
from lettered_network import EPOCH, ROUND
from small_network import ONE, SmallNetwork, until

from hushcast_protocol.content.bodies import Content

DAY = 24 * EPOCH
TOLD_WITHIN = 30 * ROUND  # seconds from a subscription until all relays were told
HEARD_WITHIN = 8 * ROUND  # seconds from a publication to its reader
LANE_WITHIN = DAY + 8 * ROUND  # seconds until a second was shown a lane's bill


def told(reader: CoveredNode, number: int = 0) -> dict[str, Any]:
    """What `hushcast subscriptions` has of a subscription of it."""
    return reader.daemon.service.subscriptions()[number]


async def published(net: SmallNetwork, payload: bytes) -> None:
    await net.clients[0].daemon.service.enqueue(ONE, Content(payload))


async def a_lane(reader: CoveredNode) -> None:
    """Wait until its relays were told, and a lane brings blocks."""
    await until(lambda: told(reader)["nodes"] == 11, TOLD_WITHIN, "all were told")
    await until(lambda: "; " not in told(reader)["outlook"], LANE_WITHIN, "its lane is there")
