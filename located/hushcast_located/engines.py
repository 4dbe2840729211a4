"""Which engine answers, and finds out who wants what: `local` where there is numpy, else the pure code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.matching import MatchingCost, pruned
from hushcast_protocol.spatial.verification_object import wanted

_MANY = 16  # subscriptions from which on arrays are worth making: that takes as long as a dozen answers


def _has_numpy() -> bool:
    try:
        import numpy as np  # noqa: F401
    except ImportError:
        return False
    return True


Answering = Callable[[Sequence[LocatedSubscription]], Iterator[tuple[bytes, int]]]
"""Yields each subscription's answer, encoded, and the number of messages in it.

Only some of them are held at once, so that they can be written or sent one after the other.
"""


def answering(feed: ProviderBatch, count: int) -> Answering:
    """Return what answers about so many subscriptions for a batch, some of them at a time."""
    if count < _MANY or not _has_numpy():
        return partial(_one_by_one, feed)
    from hushcast_located.prover import Prover

    return Prover(feed).answers


def answers(feed: ProviderBatch, subscriptions: Sequence[LocatedSubscription]) -> Iterator[tuple[bytes, int]]:
    """Answer subscriptions for a batch, as `Answering` says."""
    return answering(feed, len(subscriptions))(subscriptions)


def _one_by_one(
    feed: ProviderBatch, subscriptions: Sequence[LocatedSubscription]
) -> Iterator[tuple[bytes, int]]:
    for one in subscriptions:
        (answer,) = feed.answers([one])
        yield encode(answer), len(wanted(answer.proof))


def matches(feed: ProviderBatch, subscriptions: Sequence[LocatedSubscription]) -> list[list[str]]:
    """Return for each subscription the ids of all messages that it wants, sorted."""
    found: list[list[str]] = [[] for _ in subscriptions]
    if not _has_numpy():
        asked = [feed.table.asked(one) for one in subscriptions]
        for number, entry in pruned(feed.root, asked, MatchingCost()):
            found[number].append(entry.message.id)
    else:
        from hushcast_located.crowd import crowd_by
        from hushcast_located.local_engine import LocalEngine, MatchingWork

        for entry, numbers in LocalEngine(crowd_by(feed.table, subscriptions)).pruned(
            feed.root, MatchingWork()
        ):
            for number in numbers.tolist():
                found[number].append(entry.message.id)
    return [sorted(some) for some in found]
