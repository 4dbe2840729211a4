"""Watching: what messages on their way down say of who wants what, whatever hides words.

Routing by content sends a message to those who asked for it, so a broker sees which child gets which message,
and how many.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping


def known_topic(carried: Collection[bytes], sent: Mapping[str, Collection[bytes]]) -> set[str]:
    """Return the children of a broker that were sent what a topic carried.

    `carried` are the ids of a topic's messages, which whoever subscribes to it has; `sent` those that a
    broker sent to each child. A child that got all of them wants the topic: ids stay the same down the tree.
    """
    return {child for child, ids in sent.items() if carried and all(one in ids for one in carried)}


def by_shares(counts: Mapping[str, int], shares: Mapping[str, float], messages: int) -> dict[str, str]:
    """Return the likeliest topic of each row, by how many of all `messages` it was sent.

    `shares` are the topics' shares of all messages, as far as they are known. Each row is judged alone.
    """
    return {
        row: max(shares, key=lambda topic: (_likelihood(count, shares[topic], messages), topic))
        for row, count in counts.items()
    }


def _likelihood(count: int, share: float, messages: int) -> float:
    """Return the logarithm of how likely a binomial count is, but for what is the same for all shares."""
    if share in (0.0, 1.0):
        return 0.0 if count == share * messages else -math.inf
    return count * math.log(share) + (messages - count) * math.log1p(-share)
