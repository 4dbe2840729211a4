"""What somebody without a name is told: whether a crowd stands behind one filter, and nothing below a crowd.

An answer to any smaller question says where few are: asked often enough, it gives a filter, and how many
want it. So the condition is `source`, under which a filter has to be known to be asked about; k has a floor;
the way is a whole one; bogus sources count, for who has them is not to be found out. How often a topic is
asked about is bounded for all who ask together, as nobody can tell them apart.
"""

from __future__ import annotations

from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import LEAST_CROWD, AnonymityCondition
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters

MAX_ALLOWANCES = 1024  # of questions about topics, some 100 kB; topics that meet in one share it
ASKED_A_MINUTE, ASKED_AT_ONCE = 1.0, 8.0  # questions about a topic: for whoever thinks of subscribing to it
SECRET = 16  # bytes
_MINUTE = 60.0  # seconds


def check_coarse(question: TomographyQuestion, gathered: StatedFilters) -> None:
    """Raise `Refusal` (`exact`) where an answer would tell more than strangers are told."""
    broker = gathered.tree.brokers.get(question.target)
    is_whole = gathered.is_edge(question.origin) and broker is not None and broker.role == "root"
    is_plain = (
        question.condition is AnonymityCondition.SOURCE and not question.is_real and not question.sources
    )
    if question.k < LEAST_CROWD or not is_plain or not is_whole:
        raise Refusal("exact")


class Allowances:
    """How often topics may still be asked about. `now` is in seconds of any clock."""

    def __init__(self, secret: bytes, now: float) -> None:
        """`secret` (16 bytes) decides which topics share one, so that nobody can choose whose to use up."""
        assert len(secret) == SECRET
        self._secret = secret
        self._buckets = [
            TokenBucket(ASKED_A_MINUTE / _MINUTE, ASKED_AT_ONCE, now) for _ in range(MAX_ALLOWANCES)
        ]

    def take(self, topic: bytes, now: float) -> None:
        """Take a question about a topic; raise `Refusal` (`quota`) where it was asked about too often."""
        place = int.from_bytes(digest(Domain.ALLOWANCE, self._secret, topic)[:4], "big") % MAX_ALLOWANCES
        if not self._buckets[place].take(now):
            raise Refusal("quota")
