"""The two lists of a quarter: which relays may be second, and which third, the same by whoever draws them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letters import Stage

_ABLE = 3  # times the width: with fewer relays lists and porters would be the same few


@dataclass(frozen=True, slots=True)
class CoverLists:
    """Seconds and thirds of a quarter; no relay is both."""

    seconds: frozenset[RelayId]
    thirds: frozenset[RelayId]

    @classmethod
    def drawn(cls, rules: CoverRules, value: bytes, able: Iterable[RelayId]) -> CoverLists:
        """Draw both lists by a quarter's value; a relay that leaves is followed by the next lowest.

        Seconds come first. Raises `Refusal` where there are fewer than three times `width` relays.
        """
        relays = frozenset(able)
        if len(relays) < _ABLE * rules.width:
            raise Refusal(
                f"cover does not start: it needs {_ABLE * rules.width} relays that were listed for long"
                f" enough, and there are {len(relays)}"
            )
        seconds = _lowest(value, Stage.SECOND, relays, rules.width)
        return cls(seconds, _lowest(value, Stage.THIRD, relays - seconds, rules.width))


def _lowest(value: bytes, stage: Stage, relays: Iterable[RelayId], width: int) -> frozenset[RelayId]:
    seed = value + bytes([stage])
    return frozenset(heapq.nsmallest(width, relays, key=lambda relay: digest(Domain.COVER, seed, relay)))
