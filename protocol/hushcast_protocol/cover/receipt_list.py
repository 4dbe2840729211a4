"""A third's receipts: one list a round, the same for all its daemons, sealed for each by its second."""

from __future__ import annotations

from hushcast_protocol.base.crypto.aead import TAG
from hushcast_protocol.base.crypto.secrets import Randomness, sample
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.round_robin import RoundRobin
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.letter_contents import NUMBER

BLOCK = 4096  # bytes, as a porter hands it to its daemon
LIST = BLOCK - TAG  # bytes; a second seals it for each of its waybills
LISTED_A_ROUND = LIST // NUMBER  # numbers of letters
MAX_UNLISTED = 65_536  # numbers; 128 rounds of receipts: who waits so long has sent the message anew


class ReceiptList:
    """Numbers of letters that were dealt with and are not listed yet."""

    def __init__(self, randomness: Randomness, seconds: int) -> None:
        """`seconds` share the room for those that wait."""
        self._randomness = randomness
        self._share = MAX_UNLISTED // seconds
        self._came: RoundRobin[RelayId, bytes] = RoundRobin()
        self._done: RoundRobin[RelayId, bytes] = RoundRobin()

    def note(self, second: RelayId, number: bytes) -> None:
        """List a letter of a second that came in a round soon; where too many of it wait, in none."""
        self._add(self._came, second, number)

    def note_done(self, second: RelayId, number: bytes) -> None:
        """The same of what was in one, behind all that came: late, that one costs a chain, this a letter."""
        self._add(self._done, second, number)

    def _add(self, waiting: RoundRobin[RelayId, bytes], second: RelayId, number: bytes) -> None:
        if waiting.count(second) < self._share // 2:
            waiting.add(second, number)

    def end_round(self) -> bytes:
        """Return the list of a round: numbers in random order, and random ones where there are too few.

        Seconds come in turn, so one that has letters listed without end takes its part and no more.
        """
        listed: list[bytes] = []
        for waiting in (self._came, self._done):
            while waiting and len(listed) < LISTED_A_ROUND:
                listed.append(waiting.pop()[1])
        listed += [self._randomness(NUMBER) for _ in range(LISTED_A_ROUND - len(listed))]
        return b"".join(sample(self._randomness, listed, len(listed)))


def listed_numbers(listed: bytes) -> frozenset[bytes]:
    """Return the numbers in a list; raise `DecodeError`."""
    if len(listed) != LIST:
        raise DecodeError("a list of receipts is of another size")
    return frozenset(listed[begin : begin + NUMBER] for begin in range(0, LIST, NUMBER))
