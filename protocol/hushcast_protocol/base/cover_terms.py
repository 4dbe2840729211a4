"""Cover's terms: whether a network has cover, by which numbers, and which value its lists are drawn by."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.wire import Bytes32, Counter, Wire

LEAST_ROUND = 20  # seconds; testnets
LONGEST_ROUND = 3_600  # seconds; a publication would take two hours
LEAST_WIDTH = 4  # relays of a list; one that is shorter puts everybody's letters into too few hands
MAX_WIDTH = 16  # relays of a list; who watches the lines of more of them than that finds authors
# Days that a relay was listed for before it may be on a list: nobody joins for a value he saw.
LISTED_DAYS = 30
MAX_LISTED_DAYS = 365  # a year; with more no network would ever have lists
QUARTER = 91  # days of one pair of lists: each new pair is another chance to be named


@dataclass(frozen=True, slots=True)
class CoverTerms:
    """The rule of a network for cover (`network_rules.py` has how it is told)."""

    round_seconds: int = 0
    """Length of a round, `LEAST_ROUND` to `LONGEST_ROUND`; 0: no cover."""
    width: int = LEAST_WIDTH
    """Relays of each list, `LEAST_WIDTH` to `MAX_WIDTH`."""
    listed_days: int = LISTED_DAYS
    """Days of 24 epochs that a relay was listed for when a list's value was drawn, up to `MAX_LISTED_DAYS`.

    0: any relay that is listed now may be on a list, as in testnets.
    """

    def __bool__(self) -> bool:
        return self.round_seconds > 0


NO_COVER = CoverTerms()
"""No relay takes letters."""


class CoverDraw(Wire, frozen=True, tag="cover-draw"):
    """What a head says of a quarter's lists: the same in all heads of the quarter."""

    quarter: Counter
    """The day over `QUARTER`."""
    epoch: Counter
    """Of the head that drew the value: who was listed later may have been made for it."""
    value: Bytes32
