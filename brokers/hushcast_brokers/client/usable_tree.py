"""Sees to it that a daemon holds a tree with an edge broker that it may use, and hears of the root again."""

from __future__ import annotations

from collections.abc import Callable, Collection

import trio

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.tree_request import ask_for_tree
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.brokers.broker_tree import ListedBroker
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two questions to the root


async def keep_usable_tree(parts: ClientParts, choice: Callable[[], Collection[ListedBroker]]) -> None:
    """Ask the root for a newer tree for as long as that held leaves no choice; until cancelled."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, parts.context.env.randomness)
    while True:
        if not choice():
            await reach_root(parts)
        if choice():
            backoff.reset()
            await parts.tree.changed()
        else:
            await trio.sleep(backoff.next())


async def keep_root_heard(parts: ClientParts) -> None:
    """Whenever the root has not answered several times in a row, ask it until it does; until cancelled."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, parts.context.env.randomness)
    while True:
        await parts.root_contact.lost()
        if await reach_root(parts):
            backoff.reset()
        else:
            await trio.sleep(backoff.next())


async def reach_root(parts: ClientParts) -> bool:
    """Take a newer tree from the root, if it has one; return whether it answered."""
    try:
        await ask_for_tree(parts.network, parts.tree, parts.root_now(), parts.transport, parts.context.env)
    except (PeerError, TransportError) as error:
        log.info("the root does not answer", reason=str(error))
        parts.root_contact.note(worked=False)
        return False
    parts.root_contact.note(worked=True)
    return True
