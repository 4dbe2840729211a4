"""Rounds of a topic: those in which its messages go at once, drawn in secret, one of four in the mean.

Who loses letters by rounds strikes off, with each round that a message of a topic comes out of, those whose
letters of that round it lost. So a topic's messages go three to a round, and in few rounds. Each round is
drawn by itself: however long nothing came, the next is as likely as ever, so silence does not show that a
message was lost. Each topic has rounds of its own: common ones would show that two topics have one author.
"""

from __future__ import annotations

import math

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.cover.cover_rules import AT_ONCE_A_ROUND

TOPIC_EVERY = 4  # rounds to one of a topic's, in the mean; docs/decisions/0101-fewer-rounds-speak.md
_KEY = 32  # bytes
_DRAW = 16  # bytes


def rounds_taken(letters: int, topics: int) -> int:
    """Return in how many rounds so many letters of each of some topics go, as a rule.

    They go three to a round that any of these topics has: the mean of how many rounds that takes, and two
    standard deviations of how many pass until one topic has had enough of them.
    """
    share = 1 / TOPIC_EVERY
    rounds = -(-letters // AT_ONCE_A_ROUND)
    mean = rounds * topics / (1 - (1 - share) ** topics)
    return math.ceil(mean + 2 * math.sqrt(rounds * (1 - share)) / share)


class TopicRounds:
    """The rounds of one daemon's topics, as long as it runs."""

    def __init__(self, randomness: Randomness) -> None:
        self._key = randomness(_KEY)

    def has(self, topic: str, number: int) -> bool:
        """Tell whether messages of a topic go at once in a round."""
        place = number.to_bytes(8, "big")
        drawn = digest(Domain.TOPIC_ROUND, place, topic.encode(), key=self._key, size=_DRAW)
        return int.from_bytes(drawn, "big") % TOPIC_EVERY == 0
