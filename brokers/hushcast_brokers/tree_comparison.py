"""The comparison of trees: when a link was accepted, whoever holds the older one is told the newer one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hushcast_brokers.held_tree import HeldTree
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.brokers.frames import NewTree
from hushcast_runtime.transports.channel import Channel

TREE_WITHIN = 30.0  # seconds for the tree of somebody who said that it has a newer one


async def compare_trees(
    channel: Channel[Any],
    theirs: RosterView | None,
    held: HeldTree,
    clashed: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Take the other end's tree or tell it ours, if it wants any; closes the link where that fails.

    `clashed` is called where it holds another tree of the same version. Raises `PeerError` or
    `TransportError`.
    """
    if theirs is None:
        return
    try:
        if channel.peer is not None and theirs.epoch > held.view.epoch:
            frame = await channel.one(TREE_WITHIN)
            if not isinstance(frame, NewTree):
                raise DecodeError("somebody does not say the newer tree that it spoke of")
            await held.take(frame.tree)
        ours = held.view
        if clashed is not None and theirs.epoch == ours.epoch and theirs.digest != ours.digest:
            await clashed()
        told = theirs.epoch
        while (tree := held.newest) is not None and tree.version > told:
            told = tree.version
            await channel.send(NewTree(tree.signed))
    except BaseException:
        await channel.aclose()
        raise
