"""A third's receipts: for each second a list a round, the same for all its daemons, and sealed for each."""

from __future__ import annotations

from collections import deque

from hushcast_protocol.base.crypto.aead import TAG
from hushcast_protocol.base.crypto.secrets import Randomness, sample
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.letter_contents import NUMBER

BLOCK = 4096  # bytes, as a porter hands it to its daemon
LIST = BLOCK - TAG  # bytes; a second seals it for each of its waybills
LISTED_A_ROUND = LIST // NUMBER  # numbers of letters: 96 waybills have no more, whatever is in their letters
DONE_A_ROUND = 500  # of them that what is done has, where they are short; what came has a few more: loops


class ReceiptList:
    """Numbers of letters that came, or were dealt with, and are not listed yet.

    Each second has a list of its own letters, so who has letters listed without end takes no room of others.
    """

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._came: dict[RelayId, list[bytes]] = {}
        self._done: dict[RelayId, deque[bytes]] = {}

    def note(self, second: RelayId, number: bytes) -> None:
        """List a letter of a second that came, in this round or in none: late, it would count as lost."""
        self._came.setdefault(second, []).append(number)

    def note_done(self, second: RelayId, number: bytes) -> None:
        """The same of what was in one, in this round or a later one of its hour."""
        self._done.setdefault(second, deque()).append(number)

    def end_round(self, second: RelayId) -> bytes:
        """Return a second's list: numbers in random order, and random ones where there are too few.

        What is done comes behind what came, as it can wait, and has a part of its own where room is short.
        What came is in the random order of its round, so what has no room is drawn from all of it.
        """
        came, done = self._came.pop(second, []), self._done.get(second, deque())
        listed = came[: LISTED_A_ROUND - min(len(done), DONE_A_ROUND)]
        listed += [done.popleft() for _ in range(min(len(done), LISTED_A_ROUND - len(listed)))]
        filler = self._randomness(NUMBER * (LISTED_A_ROUND - len(listed)))
        listed += [filler[begin : begin + NUMBER] for begin in range(0, len(filler), NUMBER)]
        return b"".join(sample(self._randomness, listed, LISTED_A_ROUND))

    def end_hour(self) -> None:
        """Forget what had no room: its daemons take it for lost by now."""
        self._came.clear()
        self._done.clear()


def listed_numbers(listed: bytes) -> frozenset[bytes]:
    """Return the numbers in a list; raise `DecodeError`."""
    if len(listed) != LIST:
        raise DecodeError("a list of receipts is of another size")
    return frozenset(listed[begin : begin + NUMBER] for begin in range(0, LIST, NUMBER))
