"""A third: it opens what has a message in it, and knows which letters to list."""

from __future__ import annotations

from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letter_contents import LetterFind, open_content
from hushcast_protocol.cover.letter_second import MarkedLetter
from hushcast_protocol.cover.letters import Stage, bond_of


class LetterThird:
    """One relay as a third."""

    def __init__(self, rules: CoverRules, relay: RelayId, key: ParcelKey, first: int) -> None:
        """`first` is the first round whose letters it takes: the next, after a start."""
        self._rules = rules
        self._relay = relay
        self._key = key
        self._batch: LetterBatch[tuple[RelayId, LetterFind]] = LetterBatch(first)

    def take(self, letter: MarkedLetter, now: int, second: RelayId) -> None:
        """Take a letter from a second, and hold it to the end of the round; `now` is the one that ends next.

        Raises a `PeerError` where no daemon and no porter makes such, or it was seen before, and `Refusal`
        as a batch does.
        """
        digest = self._batch.check_new(letter.inside)
        self._batch.check_due(letter.due, now)
        bond = bond_of(self._rules, Stage.THIRD, self._relay, letter.due)
        self._batch.hold(digest, (second, open_content(self._key, bond, letter.mark, letter.inside)))

    def end_round(self, randomness: Randomness) -> list[tuple[RelayId, LetterFind]]:
        """Return what was in the letters of the round that ends, and their seconds, in random order."""
        return self._batch.end_round(randomness)
