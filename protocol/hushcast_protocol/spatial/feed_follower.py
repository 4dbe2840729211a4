"""Follows a feed: what the answers to one subscription say, in order, and what is missing, late or wrong.

A machine that is moved by replies and by deadlines. Networks bring replies in any order, some twice, some
never. An interval is told in its order; one that does not come within `patience` while a later one is there
was left out, and is told as missing. If it comes all the same it is told late, and checked against what the
intervals around it say of it. Nothing is told of an answer before it was verified.

What is told is told one event at a time, and `state` is that of after the last one: who notes it before the
next is asked for hears nothing twice and loses nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, check_by, check_later, check_next, kept_batch
from hushcast_protocol.spatial.feed_events import (
    MAX_PASSED,
    FeedEvent,
    FeedPosition,
    FeedTrouble,
    IntervalArrived,
    NewOwnerKey,
    NewWeights,
    PassedInterval,
    RequestAccepted,
)
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_requests import RequestConfirmation, decode_reply
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.verifier import verify_answer

PATIENCE = (
    60.0  # seconds; a network brings answers in another order than they were sent, over Tor by a minute
)
MAX_EARLY = 16  # answers that wait for one before them: with more, what they wait for is missing at once
MAX_ASKED = 2  # subscriptions that answers may be to: the one of now, and the one that it took the place of


@dataclass(frozen=True)
class _Early:
    """An answer that waits for its turn, or one that did not hold, by whose batch the chain goes on."""

    batch: Batch
    arrived: IntervalArrived | None
    since: float
    mark: int


@dataclass
class _Told:
    """Problems that were told: each once for an interval."""

    _known: set[tuple[AnswerProblem, int]] = field(default_factory=set)

    def is_new(self, problem: AnswerProblem, number: int) -> bool:
        """Note a problem of an interval; return whether it was not told before."""
        before = len(self._known)
        self._known.add((problem, number))
        return len(self._known) > before

    def forget(self, below: int) -> None:
        """Forget those of intervals below a number."""
        self._known = {one for one in self._known if one[1] >= below}


class FeedFollower:
    """Follows a feed for one subscription; `first` is the number of the first request for it."""

    def __init__(
        self,
        owner: PublicKey,
        asked: LocatedSubscription,
        now: float,
        first: int = 0,
        patience: float = PATIENCE,
        followed: FeedPosition | None = None,
    ) -> None:
        self._keys = OwnerKeys.read(owner, followed.keys if followed is not None else ())
        self._asked: OrderedDict[bytes, LocatedSubscription] = OrderedDict({asked.digest: asked})
        self._first = first
        self._most_patience = patience
        self._began = now
        self._early: dict[int, _Early] = {}
        self._late: deque[_Early] = deque()
        self._pending: deque[FeedEvent] = deque()
        self._told = _Told()
        self._newest: tuple[Batch, float] | None = (
            None  # the provider says that it has this batch; heard when
        )
        self._is_based = followed is not None and followed.last is not None
        self._last = kept_batch(followed.last) if followed is not None and followed.last else None
        self._at = followed.at if followed is not None else 0
        self._silent_to = followed.silent_to if followed is not None else 0
        self._passed = {one.number: one for one in (followed.passed if followed is not None else ())}
        self._table = None if self._last is None else self._last.body.table
        self._key = owner if self._last is None else self._signer(self._last.body.number)
        self._is_end_told = False

    @property
    def state(self) -> FeedPosition:
        """How far it has come: what to go on with in another life."""
        last = None if self._last is None else self._last.signed
        return FeedPosition(self._at, last, tuple(self._passed.values()), self._silent_to, self._keys.signed)

    @property
    def oldest_mark(self) -> int | None:
        """The least mark of an answer that waits for its turn, which `state` knows nothing of."""
        return min((one.mark for one in [*self._early.values(), *self._late]), default=None)

    @property
    def deadline(self) -> float | None:
        """When to ask for an event again, if no reply comes before."""
        moments = [self._gap_ends(), self._silence_ends()]
        return min((one for one in moments if one is not None), default=None)

    def ask(self, subscription: LocatedSubscription) -> None:
        """Take answers to another subscription from now on, and still those to the one before it."""
        self._asked[subscription.digest] = subscription
        while len(self._asked) > MAX_ASKED:
            self._asked.popitem(last=False)

    def hear(self, data: bytes, now: float, mark: int = 0) -> None:
        """Take a whole reply; `mark` is by what it is known as long as it waits."""
        try:
            reply = decode_reply(data)
            if isinstance(reply, RequestConfirmation):
                self._take(reply, now)
            elif isinstance(reply, LocatedAnswer):
                self._answer(reply, now, mark)
            else:
                raise DecodeError("a table of weights is no answer")
        except DecodeError:
            self._trouble(AnswerProblem.FORM)

    def step(self, now: float) -> FeedEvent | None:
        """Return what is to be told next, `None` if there is nothing until `deadline` or another reply."""
        while True:
            if self._pending:
                return self._pending.popleft()
            if self._keys.end is not None and not self._is_end_told:
                self._is_end_told = True
                return FeedTrouble(AnswerProblem.REVOKED, self._keys.end + 1)
            if self._late:
                self._past(self._late.popleft())
            elif not self._moves(now):
                return self._silence(now)

    def _take(self, taken: RequestConfirmation, now: float) -> None:
        self._pending.append(RequestAccepted(taken.number))
        self._learn(taken.keys)
        if taken.newest is None:
            return  # it has no batch so far; which one its first will be, nobody knows
        try:
            batch = check_by(taken.newest, self._keys)
        except InvalidAnswer as error:
            self._trouble(error.problem)
            return
        number = batch.body.number
        if self._last is None:
            self._begin(batch, taken.number > self._first)
        elif number > self._at:
            if self._newest is None or number > self._newest[0].body.number:
                self._newest = batch, now
        elif (known := self._passed.get(number)) and known.digest not in (None, batch.digest):
            self._trouble(AnswerProblem.FORKED, number)
        self._is_based = True

    def _begin(self, batch: Batch, was_asked_before: bool) -> None:
        """Begin behind a batch; a request before this one may have brought answers that come later."""
        number = batch.body.number
        begin = min([number, *(one - 1 for one in self._early)])
        if was_asked_before:
            self._await_before(begin)
        if begin == number:
            self._last, self._table = batch, batch.body.table
            self._passed[number] = PassedInterval(number, batch.digest, was_asked_before)
        else:
            self._newest = batch, min(one.since for one in self._early.values())
        self._at = begin

    def _await_before(self, number: int) -> None:
        """Take it that up to this interval answers may have been sent that still come."""
        for one in range(max(number - MAX_EARLY, 0) + 1, number + 1):
            self._passed[one] = PassedInterval(one, None, is_awaited=True)

    def _answer(self, answer: LocatedAnswer, now: float, mark: int) -> None:
        self._learn(answer.keys)
        try:
            batch = check_by(answer.batch, self._keys)
        except InvalidAnswer as error:
            self._trouble(error.problem)
            return
        asked = self._asked.get(answer.subscription)
        arrived = None
        try:
            if asked is None:
                raise InvalidAnswer(AnswerProblem.OTHER_SUBSCRIPTION)
            said = verify_answer(self._keys, asked, answer)
            arrived = IntervalArrived(batch, asked, said.messages, said.rule)
        except InvalidAnswer as error:
            self._trouble(error.problem, batch.body.number)
        except DecodeError:
            self._trouble(AnswerProblem.FORM, batch.body.number)
        self._place(_Early(batch, arrived, now, mark))

    def _learn(self, given: Sequence[Signed]) -> None:
        """Take hand-overs of the owner, unless they contradict those that are known, or what was passed.

        A revocation is always taken: who has an old key may end a feed, and go on with none.
        """
        try:
            keys = self._keys.extended(given)
            for one in keys.said:
                known = self._passed.get(one.last)
                if one.new is not None and known is not None and known.digest not in (None, one.batch):
                    raise InvalidAnswer(AnswerProblem.FORKED)
        except InvalidAnswer as error:
            self._trouble(error.problem)
        except DecodeError:
            self._trouble(AnswerProblem.FORM)
        else:
            if keys is not self._keys:
                self._keys = keys
                self._look_again()

    def _look_again(self) -> None:
        """Drop what waits and does not hold by the keys of now: an old key may have signed it."""
        self._early = {number: one for number, one in self._early.items() if self._holds(one.batch)}
        self._late = deque(one for one in self._late if self._holds(one.batch))
        if self._newest is not None and not self._holds(self._newest[0]):
            self._newest = None

    def _holds(self, batch: Batch) -> bool:
        """Tell whether a batch that was checked before holds by the keys of now; if not, that is told."""
        try:
            check_by(batch.signed, self._keys)
        except InvalidAnswer as error:
            self._trouble(error.problem, batch.body.number)
            return False
        return True

    def _signer(self, number: int) -> PublicKey:
        """Return the key that signs a batch, or did until it was revoked."""
        end = self._keys.end
        return self._keys.of(number if end is None else min(number, end))

    def _place(self, one: _Early) -> None:
        """Let an answer wait for its turn, or tell it late."""
        number = one.batch.body.number
        if self._is_based and number <= self._at:
            self._late.append(one)
            return
        there = self._early.get(number)
        if there is not None and there.batch.digest != one.batch.digest:
            self._trouble(AnswerProblem.FORKED, number)
        elif there is None or there.arrived is None:
            self._early[number] = one

    def _past(self, one: _Early) -> None:
        number = one.batch.body.number
        known = self._passed.get(number)
        if known is None:
            if one.arrived is not None:  # none is told already
                self._trouble(AnswerProblem.OLD_ROOT)
        elif known.digest not in (None, one.batch.digest):
            self._trouble(AnswerProblem.FORKED, number)
        elif known.is_awaited and one.arrived is not None:
            self._passed[number] = PassedInterval(number, one.batch.digest, is_awaited=False)
            self._expect(one.batch)
            self._pending.append(replace(one.arrived, is_late=True))

    def _expect(self, batch: Batch) -> None:
        """Note what a batch says of the one before it, where that was passed unseen."""
        before = self._passed.get(batch.body.number - 1)
        if before is not None and before.digest is None:
            self._passed[before.number] = PassedInterval(
                before.number, batch.body.previous, before.is_awaited
            )

    def _moves(self, now: float) -> bool:
        """Pass one interval, or some that are missing; return whether it can be done."""
        ends = self._gap_ends()
        is_over = ends is not None and now >= ends
        if not self._is_based:
            if 1 not in self._early and not is_over:
                return False
            self._at = min(self._early) - 1  # where it begins: nobody said what came before
            self._await_before(self._at)
            self._is_based = True
        if self._at + 1 in self._early:
            self._pass(self._early[self._at + 1])
            return True
        if is_over:
            last = self._gap_to()
            for number in range(max(self._at + 1, last + 1 - MAX_PASSED), last + 1):
                self._remember(PassedInterval(number, None, is_awaited=True))
            self._trouble(AnswerProblem.MISSING_INTERVAL, self._at + 1, last)
            self._at = last
        return is_over

    def _pass(self, one: _Early) -> None:
        batch, number = one.batch, one.batch.body.number
        if self._table is not None and batch.body.table != self._table:
            self._pending.append(NewWeights(batch))
            self._table = batch.body.table
            return  # and pass it with the next event: `state` is that of after each
        if (key := self._signer(number)) != self._key:
            self._pending.append(NewOwnerKey(batch, key))
            self._key = key
            return
        self._table = batch.body.table
        del self._early[number]
        event: FeedEvent | None = None
        try:
            if self._last is not None:
                if self._last.body.number == self._at:
                    check_next(batch, self._last)
                else:
                    check_later(batch, self._last)
            event = one.arrived
            is_awaited = event is None
        except InvalidAnswer as error:
            self._trouble(error.problem, number)
            is_awaited = False
        self._expect(batch)
        self._remember(PassedInterval(number, batch.digest, is_awaited))
        self._last, self._at = batch, number
        self._told.forget(number - MAX_PASSED)
        if event is not None:
            self._pending.append(event)

    def _remember(self, one: PassedInterval) -> None:
        self._passed[one.number] = one
        while len(self._passed) > MAX_PASSED:
            del self._passed[min(self._passed)]

    def _gap_to(self) -> int:
        """Return the last of the intervals that are missing now."""
        if self._early:
            return min(self._early) - 1
        return self._newest[0].body.number if self._newest is not None else self._at

    def _gap_ends(self) -> float | None:
        """Return until when the next interval is waited for, `None` if nothing says that there is one."""
        heard = [one.since for one in self._early.values()]
        if self._newest is not None and self._newest[0].body.number > self._at:
            heard.append(self._newest[1])
        if not heard or (self._is_based and self._at + 1 in self._early):
            return None
        return min(heard) + (0 if len(self._early) > MAX_EARLY else self._patience)

    def _silence_ends(self) -> float | None:
        """Return until when something is waited for, `None` if nobody knows when anything is due."""
        if self._last is None or self._is_end_told:
            return None
        due = self._known_to(self._last) + self._last.body.seconds
        return max(due, self._began) + self._patience

    def _known_to(self, last: Batch) -> int:
        """Return the end of the newest interval of which anything is known, or that silence was told of."""
        # Moments, not numbers: while the owner pauses time goes on, and numbers do not.
        newest = () if self._newest is None else (self._newest[0].end,)
        return max(last.end, self._silent_to, *(one.batch.end for one in self._early.values()), *newest)

    def _silence(self, now: float) -> FeedEvent | None:
        ends = self._silence_ends()
        if ends is None or self._last is None or now < ends:
            return None
        since, seconds = self._known_to(self._last), self._last.body.seconds
        self._silent_to = since + int((now - self._patience - since) // seconds) * seconds
        return FeedTrouble(AnswerProblem.SILENT, since=since, until=self._silent_to)

    @property
    def _patience(self) -> float:
        """How long to wait for what should be there: an interval at most, so that it is told within one."""
        bodies = [one.batch.body.seconds for one in self._early.values()]
        if self._last is not None:
            bodies.append(self._last.body.seconds)
        return min([self._most_patience, *bodies])

    def _trouble(self, problem: AnswerProblem, first: int | None = None, last: int | None = None) -> None:
        if self._told.is_new(problem, self._at if first is None else first):
            self._pending.append(FeedTrouble(problem, first, first if last is None else last))
