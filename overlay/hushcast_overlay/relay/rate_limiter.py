"""The rate limiter: how much one previous hop may send to one next hop, in a token bucket for each pair.

Who sends more is slowed, and loses nothing: its acknowledgements wait, and so does what it has not sent yet.
All other links go on as before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.content.hops import Hop
from hushcast_runtime.environment import Environment

FORWARDS_A_SECOND = 5000.0  # several times what a circuit of Tor carries
FORWARDS_AT_ONCE = 50_000.0  # ten seconds of it: a spool that empties after an outage
MAX_FLOWS = 16_384  # pairs whose bucket is not full; 4 MB


class RateLimiter:
    """The flows through one relay."""

    __slots__ = ("_buckets", "_env")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._buckets: OrderedDict[tuple[bytes, Hop], TokenBucket] = OrderedDict()

    def debt(self, previous: bytes, sent: Mapping[Hop, int]) -> float:
        """Count messages from a previous hop, by their next hops; return the seconds that it has to wait."""
        now = self._env.elapsed()
        longest = 0.0
        for hop, count in sent.items():
            bucket = self._buckets.get((previous, hop))
            if bucket is None:
                bucket = TokenBucket(FORWARDS_A_SECOND, FORWARDS_AT_ONCE, now)
                self._buckets[previous, hop] = bucket
                if len(self._buckets) > MAX_FLOWS:
                    self._buckets.popitem(last=False)
            longest = max(longest, bucket.owe(now, count))
        return longest
