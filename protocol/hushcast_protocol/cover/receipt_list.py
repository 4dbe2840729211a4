"""A third's receipts: one block a round, the same for all its daemons."""

from __future__ import annotations

from collections import deque

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.secrets import Randomness, sample
from hushcast_protocol.cover.letter_contents import NUMBER

BLOCK = 4096  # bytes
LISTED_A_ROUND = BLOCK // NUMBER  # numbers of letters
MAX_UNLISTED = 65_536  # numbers; 128 rounds of receipts: who waits so long has sent the message anew


class ReceiptList:
    """Numbers of letters that were dealt with and are not listed yet."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._waiting: deque[bytes] = deque(maxlen=MAX_UNLISTED)

    def note(self, number: bytes) -> None:
        """List a letter in one of the next rounds; where too many wait, the oldest is forgotten."""
        self._waiting.append(number)

    def end_round(self) -> bytes:
        """Return the block of a round: numbers in random order, and random ones where there are too few."""
        count = min(LISTED_A_ROUND, len(self._waiting))
        listed = [self._waiting.popleft() for _ in range(count)]
        listed += [self._randomness(NUMBER) for _ in range(LISTED_A_ROUND - count)]
        return b"".join(sample(self._randomness, listed, len(listed)))


def listed_numbers(block: bytes) -> frozenset[bytes]:
    """Return the numbers in a block; raise `DecodeError`."""
    if len(block) != BLOCK:
        raise DecodeError("a list of receipts is of another size")
    return frozenset(block[begin : begin + NUMBER] for begin in range(0, BLOCK, NUMBER))
