"""A second: it reads waybills, and passes each letter with its mark to the third that its waybill names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.hashes import LABEL
from hushcast_protocol.base.secrets import ParcelKey, Randomness
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import LATE_FOR, PASSED_A_ROUND, CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letters import Stage, open_letter
from hushcast_protocol.cover.waybills import Waybill, waybill_name

MAX_WAYBILLS = 4_096  # of one second; 10,000 daemons on lists of 8 have 1,250, on lists of 4 2,500


@dataclass(frozen=True, slots=True)
class MarkedLetter:
    """A letter as a third is handed it."""

    due: int
    mark: bytes
    inside: bytes


@dataclass(slots=True)
class _Shown:
    waybill: Waybill
    last: int
    """The round in which it was shown or named last."""
    by_due: Counter[int] = field(default_factory=Counter)


class LetterSecond:
    """One relay as a second."""

    def __init__(
        self, rules: CoverRules, relay: RelayId, key: ParcelKey, thirds: Collection[RelayId], first: int
    ) -> None:
        """`first` is the first round whose letters it takes: the next, after a start."""
        self._rules = rules
        self._relay = relay
        self._key = key
        self._thirds = thirds
        self._shown: dict[bytes, _Shown] = {}
        self._batch: LetterBatch[tuple[RelayId, MarkedLetter]] = LetterBatch(first)

    def show(self, sealed: bytes, now: int) -> None:
        """Take a waybill from a porter; once more is as well.

        Raises `AuthenticationError` where it is not for this relay or names no third of the list, and
        `Refusal` ("quota") where there are too many.
        """
        name = waybill_name(sealed)
        if name in self._shown:
            return
        waybill = Waybill.opened(self._rules, self._relay, self._key, sealed)
        if waybill.third not in self._thirds:
            raise AuthenticationError("a waybill names a relay that is not on the list")
        if len(self._shown) >= MAX_WAYBILLS:
            raise Refusal("quota")
        self._shown[name] = _Shown(waybill, now)

    def take(self, sealed: bytes, now: int) -> None:
        """Open a letter in a round, and hold it until its end.

        Raises a `PeerError` where it is not for this relay, or was seen before, or its waybill was not shown;
        `Refusal`: "day" where it is not due or too late, "rate" over five of a waybill and round, "quota"
        where too many came lately.
        """
        digest = self._batch.check_new(sealed)
        letter = open_letter(self._rules, Stage.SECOND, self._relay, self._key, sealed)
        self._batch.check_due(letter.due, now)
        name, serial = letter.onward[:LABEL], letter.onward[LABEL:]
        if name not in self._shown:
            raise AuthenticationError("a letter names a waybill that was not shown")
        shown = self._shown[name]
        if shown.by_due[letter.due] >= PASSED_A_ROUND:
            raise Refusal("rate")
        shown.by_due[letter.due] += 1
        shown.last = now
        marked = MarkedLetter(letter.due, shown.waybill.mark(letter.due, serial), letter.inside)
        self._batch.hold(digest, letter.due, (shown.waybill.third, marked))

    def end_round(self, now: int, randomness: Randomness) -> list[tuple[RelayId, MarkedLetter]]:
        """Return the letters of the round that ends and their thirds, in random order.

        A waybill that no letter has named for a day is forgotten; its porter shows it again.
        """
        passed = self._batch.end_round(now, randomness)
        least = now - self._rules.held_rounds
        self._shown = {name: one for name, one in self._shown.items() if one.last >= least}
        for one in self._shown.values():
            one.by_due = Counter({due: count for due, count in one.by_due.items() if due >= now - LATE_FOR})
        return passed
