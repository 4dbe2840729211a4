"""Whether a chain loses more letters than relays do that restart now and then: Page's test, round by round.

Who loses letters by rounds does it to strike off those whose letters did not come, so a round is what counts,
however many letters are in it: each that a daemon can tell of moves a score by its log-likelihood under
`LOST` against `ORDINARY` (E. S. Page, Continuous Inspection Schemes, Biometrika 41, 1954, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.cover.cover_rules import RECEIPT_ROUNDS, RELEASE_ROUNDS, CoverRules

ORDINARY = 0.02  # share of rounds that relays lose which restart now and then
LOST = 0.1  # share that is to be found
ALARM = 9.0  # nats; docs/decisions/0095-losses-are-judged-round-by-round.md has what follows
RESTART_ROUNDS = 2  # rounds that a second or third loses at a restart: three on one day are no alarm
OUTAGE_ROUNDS = 6  # lost rounds on end, of those that are judged, that would be an alarm by themselves
OUTAGE_EPOCHS = 6  # epochs that an outage may take; who loses everything is found after them
# Lost rounds on end, of those that are judged, that no restart makes; two of one hour will do, with others
# between them. Three times in a month are an alarm: who loses all of an hour learns most.
LONG_ROUNDS = 3
LONG_DAYS = 30  # days of 24 epochs
LONG_TIMES = 3
ERRANDS_AN_HOUR = 3  # of which one at least is done where their third hands parcels over
FORGIVEN_DAYS = 30  # days of 24 epochs in which one outage counts as a restart

_ROUND_LOST = math.log(LOST / ORDINARY)  # nats
_ROUND_CAME = math.log((1 - LOST) / (1 - ORDINARY))
_Counts = dict[int, tuple[int, int]]  # by round, how many numbers came and how many did not


@dataclass(slots=True, repr=False)
class LossRecord:
    """What a judge knows of one chain, as it is on disk."""

    score: float = 0.0
    """Nats, of rounds that are judged."""
    is_alarmed: bool = False
    lost: int = 0
    """Lost rounds on end that are not in the score yet: it may be an outage."""
    outage: int = 0
    """Rounds that were handed in since the first of these was judged."""
    forgiven: int = 0
    """The round in which an outage was forgiven last; 0: none was."""
    long: tuple[int, ...] = ()
    """When each loss ended that no restart makes, of those of a month."""
    under_way: dict[bytes, int] = field(default_factory=dict)
    """When each letter is due whose number is to be listed."""
    rounds: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each round that is not judged yet, how many numbers came and how many did not."""
    first: int = 0
    """Of these that are of one hour with the last, the first."""
    is_long: bool = False
    """Whether two of one hour are further apart than those of a restart."""
    to_be_done: dict[bytes, int] = field(default_factory=dict)
    """By which round the second number of each message that came is to be listed."""
    hours: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By that round, the same of these numbers as of rounds."""


class LossJudge:
    """The judge of one daemon's chain."""

    def __init__(self, rules: CoverRules, record: LossRecord) -> None:
        self._day_rounds = rules.rounds_in(1)
        self._forgiven_rounds = rules.rounds_in(FORGIVEN_DAYS)
        self._long_rounds = rules.rounds_in(LONG_DAYS)
        self._rules = rules
        self._broken = set[int]()  # hours, by the round by which they are listed, before which one was lost
        self._longest_outage = self._day_rounds * OUTAGE_EPOCHS // EPOCHS_A_DAY
        self._errands: dict[int, dict[bytes, bool]] = {}  # whether each is done, by its release
        self.record = record
        """What is to be on disk: who has a daemon start anew does not have it forget."""

    @property
    def is_alarmed(self) -> bool:
        """Whether it lost too much; so it stays until there is another chain."""
        return self.record.is_alarmed

    def note_sent(self, number: bytes, due: int) -> None:
        """Take notice of a letter that is to be listed: a loop, or one with something in it."""
        self.record.under_way[number] = due

    def note_came(self, number: bytes, release: int) -> None:
        """Take notice that a message came, which is to be listed as done by a round.

        It says something of its third, and nothing of the letters of that round.
        """
        self.record.to_be_done[number] = release

    def note_errand(self, number: bytes, release: int) -> None:
        """Take notice of a letter that came, and that a relay beside the chain has to carry out.

        Several of one release count as one, which is lost if all are: their relays are seldom all away. Fewer
        say nothing, nor do those of before a restart.
        """
        self._errands.setdefault(release, {})[number] = False

    def note_missed(self, now: int) -> None:
        """Take notice of a round in which a letter that is to be listed could not be handed in.

        Of a porter that is away for more than a day the first day counts.
        """
        if len(self.record.rounds) < self._day_rounds:
            _count(self.record.rounds, now, came=False)

    def forget(self, numbers: Collection[bytes]) -> None:
        """Take notice that letters were handed in by a line that may not have been there."""
        for number in numbers:
            self.record.under_way.pop(number, None)

    def forget_before(self, oldest: int) -> None:
        """Take notice that lists of earlier rounds are kept no more: this daemon was away for days."""
        record = self.record
        record.under_way = {number: due for number, due in record.under_way.items() if due >= oldest}
        record.to_be_done = {number: due for number, due in record.to_be_done.items() if due >= oldest}
        self._errands = {due: errands for due, errands in self._errands.items() if due >= oldest}

    def note_listed(self, numbers: Collection[bytes]) -> None:
        """Take a third's list; what it brings too late takes nothing back."""
        for awaited, counts in self._awaited:
            for number in [one for one in awaited if one in numbers]:
                _count(counts, awaited.pop(number), came=True)
        for errands in self._errands.values():
            errands.update({number: True for number in errands if number in numbers})

    def end_round(self, now: int) -> None:
        """Judge what is overdue at the end of a round whose letters the porter could have.

        Whatever lists came: who keeps them back loses what is to be on them.
        """
        record = self.record
        for awaited, counts in self._awaited:
            for number in [one for one, due in awaited.items() if due + RECEIPT_ROUNDS < now]:
                _count(counts, awaited.pop(number), came=False)
        for due in [due for due in self._errands if due + RECEIPT_ROUNDS < now]:
            done = self._errands.pop(due).values()
            if len(done) >= ERRANDS_AN_HOUR:
                _count(record.hours, due, came=any(done))
        for due in sorted(due for due in record.rounds if due + RECEIPT_ROUNDS < now):
            self._judge(due, *record.rounds.pop(due))
        for due in [due for due in record.hours if due + RECEIPT_ROUNDS < now]:
            there, lost = record.hours.pop(due)
            # That all was done says no more than that it came, and what a restart took its rounds say.
            if lost and due not in self._broken:
                self._weigh(there, lost)
        self._broken = {due for due in self._broken if due + RECEIPT_ROUNDS >= now}
        record.outage = record.outage + 1 if record.lost else 0
        if record.outage > self._longest_outage:
            self._add_lost(record.lost)

    @property
    def _awaited(self) -> tuple[tuple[dict[bytes, int], _Counts], ...]:
        """The numbers that are to be listed, and where they count then."""
        record = self.record
        return (record.under_way, record.rounds), (record.to_be_done, record.hours)

    def _judge(self, due: int, there: int, lost: int) -> None:
        record = self.record
        if there == 0:
            of_own = self._rules.listed_in(due)
            self._broken |= {listed for listed in (of_own - RELEASE_ROUNDS, of_own) if listed >= due}
            is_on = record.lost and self._rules.released_in(record.first) == self._rules.released_in(due)
            record.first = record.first if is_on else due
            record.is_long |= due - record.first >= RESTART_ROUNDS
            record.lost += 1
            return
        counted = record.lost
        if record.is_long or counted >= LONG_ROUNDS:
            record.long = (*(one for one in record.long if due - one < self._long_rounds), due)
            record.is_alarmed |= len(record.long) >= LONG_TIMES
        can_forgive = not record.forgiven or due - record.forgiven >= self._forgiven_rounds
        if counted >= OUTAGE_ROUNDS and can_forgive:
            counted, record.forgiven = RESTART_ROUNDS, due
        self._add_lost(counted)
        self._weigh(there, lost)

    def _weigh(self, there: int, lost: int) -> None:
        record = self.record
        share = lost / (there + lost)
        record.score = max(0.0, record.score + share * _ROUND_LOST + (1 - share) * _ROUND_CAME)
        record.is_alarmed |= record.score >= ALARM

    def _add_lost(self, rounds: int) -> None:
        record = self.record
        record.lost, record.is_long = 0, False
        record.score += rounds * _ROUND_LOST
        record.is_alarmed |= record.score >= ALARM


def _count(counts: _Counts, due: int, came: bool) -> None:
    there, lost = counts.get(due, (0, 0))
    counts[due] = (there + came, lost + (not came))
