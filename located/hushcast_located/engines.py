"""Which engine answers, and finds out who wants what: `local` where there is numpy, else the pure code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer import Feed
from hushcast_protocol.spatial.matching import Counted, pruned
from hushcast_protocol.spatial.proof import wanted
from hushcast_protocol.spatial.subscription import Subscription

_MANY = 16  # subscriptions from which on arrays are worth making: that takes as long as a dozen answers


def _has_numpy() -> bool:
    try:
        import numpy as np  # noqa: F401
    except ImportError:
        return False
    return True


Answering = Callable[[Sequence[Subscription]], Iterator[tuple[bytes, int]]]
"""Yields each subscription's answer, encoded, and the number of messages in it.

Only some of them are held at once, so that they can be written or sent one after the other.
"""


def answering(feed: Feed, count: int) -> Answering:
    """Return what answers about so many subscriptions for a batch, some of them at a time."""
    if count < _MANY or not _has_numpy():
        return partial(_one_by_one, feed)
    from hushcast_located.prover import Prover

    return Prover(feed).answers


def answers(feed: Feed, subscriptions: Sequence[Subscription]) -> Iterator[tuple[bytes, int]]:
    """Answer subscriptions for a batch, as `Answering` says."""
    return answering(feed, len(subscriptions))(subscriptions)


def _one_by_one(feed: Feed, subscriptions: Sequence[Subscription]) -> Iterator[tuple[bytes, int]]:
    for one in subscriptions:
        (answer,) = feed.answers([one])
        yield encode(answer), len(wanted(answer.proof))


def matches(feed: Feed, subscriptions: Sequence[Subscription]) -> list[list[str]]:
    """Return for each subscription the ids of all messages that it wants, sorted."""
    found: list[list[str]] = [[] for _ in subscriptions]
    if not _has_numpy():
        asked = [feed.table.asked(one) for one in subscriptions]
        for number, entry in pruned(feed.root, asked, Counted()):
            found[number].append(entry.message.id)
    else:
        from hushcast_located.crowd import crowd_by
        from hushcast_located.local import Local, Work

        for entry, numbers in Local(crowd_by(feed.table, subscriptions)).pruned(feed.root, Work()):
            for number in numbers.tolist():
                found[number].append(entry.message.id)
    return [sorted(some) for some in found]
