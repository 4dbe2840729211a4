"""A second: it reads waybills, and passes each letter with its mark to the third that its waybill names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass

from hushcast_protocol.base.crypto.hashes import LABEL
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND, CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letters import Stage, open_letter
from hushcast_protocol.cover.waybills import Waybill, waybill_name

MAX_WAYBILLS = 4_096  # of one second; 10,000 daemons on lists of 8 have 1,250, on lists of 4 2,500
MAX_WAYBILLS_OF_PORTER = 64  # that one porter can show: it has no more daemons
# Of these one second takes so many parts by the width of the lists: as many times what an honest porter that
# is full has for it in the mean. Which third they name is not asked: a porter sees which are taken, and would
# find its daemons' third by some of its own.
OF_ONE_SECOND = 3


@dataclass(frozen=True, slots=True)
class MarkedLetter:
    """A letter as a third is handed it."""

    due: int
    mark: bytes
    inside: bytes


@dataclass(slots=True)
class _Shown:
    waybill: Waybill
    porter: RelayId
    last: int
    """The round in which it was shown or named last."""


class LetterSecond:
    """One relay as a second."""

    def __init__(
        self, rules: CoverRules, relay: RelayId, key: ParcelKey, thirds: Container[RelayId], first: int
    ) -> None:
        """`thirds` are those of the list, now; `first` is the first round whose letters it takes.

        After a start that is the next.
        """
        self._rules = rules
        self._relay = relay
        self._key = key
        self._thirds = thirds
        self._shown: dict[bytes, _Shown] = {}
        self._of_porter: Counter[RelayId] = Counter()
        self._came: Counter[bytes] = Counter()  # letters of each waybill since the last round
        self._batch: LetterBatch[tuple[RelayId, MarkedLetter]] = LetterBatch(first)

    def show(self, sealed: bytes, now: int, porter: RelayId) -> bool:
        """Take a waybill from a porter; tell whether it is new, and so has its price.

        Raises `AuthenticationError` where it is not for this relay, and `Refusal`: "list" where it names no
        third of the list, "quota" where there are too many, of all porters or of this one.
        """
        if waybill_name(sealed) in self._shown:
            return False
        share = OF_ONE_SECOND * MAX_WAYBILLS_OF_PORTER // self._rules.width
        if len(self._shown) >= MAX_WAYBILLS or self._of_porter[porter] >= share:
            raise Refusal("quota")
        waybill = Waybill.opened(self._rules, self._relay, self._key, sealed)
        if waybill.third not in self._thirds:
            raise Refusal("list")
        self._shown[waybill.name] = _Shown(waybill, porter, now)
        self._of_porter[porter] += 1
        return True

    def is_shown(self, name: bytes, porter: RelayId) -> bool:
        """Tell whether a porter has shown a waybill of this name."""
        return name in self._shown and self._shown[name].porter == porter

    def names(self) -> Iterable[bytes]:
        """Return the names of all waybills that are known."""
        return self._shown.keys()

    def shown(self) -> list[tuple[RelayId, Waybill]]:
        """Return all waybills that are known, each with its porter."""
        return [(one.porter, one.waybill) for one in self._shown.values()]

    def take(self, sealed: bytes, now: int, porter: RelayId) -> None:
        """Open a porter's letter, and hold it until the end of the round; `now` is the one that ends next.

        Raises a `PeerError` where it is not for this relay, or was seen before, or this porter has not shown
        its waybill; `Refusal`: "day" where it is not due then, "rate" over five of a waybill, "quota"
        where too many wait.
        """
        digest = self._batch.check_new(sealed)
        letter = open_letter(self._rules, Stage.SECOND, self._relay, self._key, sealed)
        self._batch.check_due(letter.due, now)
        name, serial = letter.onward[:LABEL], letter.onward[LABEL:]
        if not self.is_shown(name, porter):
            raise AuthenticationError("a letter names a waybill that was not shown")
        shown = self._shown[name]
        if self._came[name] >= PASSED_A_ROUND:
            raise Refusal("rate")
        self._came[name] += 1
        shown.last = now
        marked = MarkedLetter(letter.due, shown.waybill.mark(letter.due, serial), letter.inside)
        self._batch.hold(digest, (shown.waybill.third, marked))

    def end_round(self, now: int, randomness: Randomness) -> list[tuple[RelayId, MarkedLetter]]:
        """Return the letters of the round that ends and their thirds, in random order.

        A waybill that no letter has named for a day is forgotten; its porter shows it again.
        """
        passed = self._batch.end_round(randomness)
        self._came.clear()
        least = now - self._rules.held_rounds
        self._shown = {name: one for name, one in self._shown.items() if one.last >= least}
        self._of_porter = Counter(one.porter for one in self._shown.values())
        return passed
