"""A porter's part of one daemon's lanes: three blocks a round, whatever comes, and bills shown every day."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_papers import LANE_PAPER, bill_name
from hushcast_protocol.cover.lane_seconds import LANES
from hushcast_protocol.cover.receipt_list import BLOCK


class LanePorter:
    """The lanes of one daemon at its porter."""

    def __init__(
        self, rules: CoverRules, bills: Sequence[tuple[RelayId, bytes]], randomness: Randomness
    ) -> None:
        """`bills` are seconds and what to show them, in the order of the lanes.

        Raises `DecodeError` where they are not three, of a bill's size and for three different seconds.
        """
        seconds = {second for second, _ in bills}
        if len(bills) != LANES or len(seconds) != LANES or any(len(one) != LANE_PAPER for _, one in bills):
            raise DecodeError("a daemon has three lanes, each by another second")
        self._day = rules.held_rounds
        self._randomness = randomness
        self.bills = tuple(bills)
        """Seconds and what they are shown, in the order of the lanes."""
        self._lanes = [(second, sealed, _round_of(sealed) % self._day) for second, sealed in bills]
        self.names = tuple(bill_name(sealed) for _, sealed in bills)
        """Those of the bills, in the order of the lanes."""
        self._came: dict[int, bytes] = {}

    def shown(self, now: int) -> list[tuple[RelayId, bytes]]:
        """Return which bills are shown in a round, and to whom: each once a day, at a round of its own.

        Shown together they would tie the boxes of a daemon to each other, and to its waybill. The round
        follows from the bill, so that a restart moves none.
        """
        return [(second, sealed) for second, sealed, at in self._lanes if now % self._day == at]

    def take(self, bill: bytes, block: bytes, second: RelayId) -> None:
        """Take a lane's block of this round.

        Raises `DecodeError` where it has another size, `AuthenticationError` where the lane is none of this
        second, `Refusal` "rate" over one of a round.
        """
        if len(block) != BLOCK:
            raise DecodeError("a block of a lane is of another size")
        if bill not in self.names or self._lanes[lane := self.names.index(bill)][0] != second:
            raise AuthenticationError("a second hands down a block of no lane of its own")
        if lane in self._came:
            raise Refusal("rate")
        self._came[lane] = block

    def end_round(self) -> tuple[bytes, ...]:
        """Return the daemon's three blocks of a round, in the order of its lanes; random where none came."""
        handed = tuple(self._came.get(lane) or self._randomness(BLOCK) for lane in range(LANES))
        self._came.clear()
        return handed


def _round_of(sealed: bytes) -> int:
    return int.from_bytes(digest(Domain.LANE, b"shown", sealed, size=8), "big")
