"""Which engine finds out who wants what: `local` where there is numpy, the pure code elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.spatial.answer import Feed
from hushcast_protocol.spatial.matching import Counted, pruned
from hushcast_protocol.spatial.similarity import Asked
from hushcast_protocol.spatial.subscription import Subscription


def matches(feed: Feed, subscriptions: Sequence[Subscription]) -> list[list[str]]:
    """Return for each subscription the ids of all messages that it wants, sorted."""
    asked = [feed.table.asked(one) for one in subscriptions]
    found: list[list[str]] = [[] for _ in asked]
    try:
        import numpy as np  # noqa: F401
    except ImportError:
        for number, entry in pruned(feed.root, asked, Counted()):
            found[number].append(entry.message.id)
    else:
        _locally(feed, asked, found)
    return [sorted(some) for some in found]


def _locally(feed: Feed, asked: Sequence[Asked], found: list[list[str]]) -> None:
    from hushcast_located.crowd import crowd_of
    from hushcast_located.local import Local, Work

    for entry, numbers in Local(crowd_of(asked)).pruned(feed.root, Work()):
        for number in numbers.tolist():
            found[number].append(entry.message.id)
