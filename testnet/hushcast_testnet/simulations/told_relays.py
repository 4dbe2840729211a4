"""Told relays: waits until all relays that are there know of a subscription, for what counts on that.

An application is told before: by the first relay's word.
"""

from __future__ import annotations

import trio

from hushcast_node.daemon import NodeDaemon
from hushcast_overlay.routes.upkeep import OTHERS_WITHIN
from hushcast_protocol.content.topics import Interest

_LOOK_EVERY = 0.05  # virtual seconds


async def told_relays(daemon: NodeDaemon, interest: Interest) -> int:
    """Return how many have confirmed, of each of its trees, once all have or had time to; it has begun."""
    route = next(held for held in daemon.overlay.routes.held if held.wanted.interest == interest)
    with trio.move_on_after(OTHERS_WITHIN):
        while any(planned.unconfirmed for planned in route.planned.values()):  # noqa: ASYNC110
            await trio.sleep(_LOOK_EVERY)
    return min((planned.nodes for planned in route.planned.values()), default=0)
