"""The tomography service, moved by statements, questions and time; what it says is signed.

Tarkoma and Prehofer §7. It is trusted with which opaque filters each broker holds; brokers state that by
themselves, so that no broker is ever asked about a filter, which would show it the filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion, follows
from hushcast_protocol.brokers.tomography.joint_judgement import judge_together
from hushcast_protocol.brokers.tomography.judgement import judge
from hushcast_protocol.brokers.tomography.largest_k import LargestRecentK
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer, TomographyQuestion, answered
from hushcast_protocol.brokers.tomography.stated_filters import StatedFilters
from hushcast_protocol.brokers.tomography.stranger_allowances import check_coarse
from hushcast_protocol.brokers.tomography.tree_paths import between
from hushcast_protocol.content.topics import Topic

MAX_WATCHES_EACH = 256  # of one asker: a broker with a thousand clients shows few filters at its limit
MAX_WATCHES = 8192  # of all; judging one takes some 0.1 ms
SETTLE = 30  # seconds; who comes and goes meanwhile has nothing shown
RENEWED_AHEAD = 30.0  # seconds before a yes is over in which it is said anew: it may travel for as long
RESTATED_WITHIN = 10.0  # seconds in which brokers have stated more, after a larger k than ever was asked for


@dataclass(frozen=True)
class AnswerTimes:
    """How long, in seconds, an answer is valid, and a better level is to last before it is told."""

    valid: float = 300.0
    settle: float = SETTLE


class WatchUpdate(NamedTuple):
    """An answer to a watch, for whom, by the number that the asker gave it."""

    asker: PublicKey
    number: int
    answer: Signed


@dataclass(slots=True)
class _Watch:
    asked: ComparableQuestion
    epoch: int
    """Of the pseudonyms that the asker named."""
    is_anonymous: bool
    renewed_at: float
    """When the last answer is given anew."""
    better_since: float | None = None


class TomographyService:
    """Decides and signs. `now` is Unix time; whoever asks or states has proved its key on a link."""

    def __init__(self, seed: Seed, gathered: StatedFilters, calendar: Calendar, terms: AnswerTimes) -> None:
        self.gathered = gathered
        self.largest = LargestRecentK()
        self.public = seed.public()
        """The key that answers are checked with."""
        self._seed = seed
        self._calendar = calendar
        self._terms = terms
        self._watches: dict[PublicKey, dict[int, _Watch]] = {}
        self._touched: set[Topic] = set()
        self.watches = 0

    def hear(self, broker: PublicKey, signed: Signed, now: float) -> None:
        """Take a statement; raise `Refusal` (`StatedFilters.hear`). Watches learn of it at `advance`."""
        calendar = self._calendar
        epochs = range(calendar.epoch(now - calendar.lead), calendar.epoch(now + calendar.lead) + 1)
        try:
            self._touched.add(self.gathered.hear(broker, signed, epochs, now).topic)
        except Refusal as refusal:
            if refusal.reason == "contradicted":
                self._touch_all()
            raise

    def forget(self, broker: PublicKey) -> None:
        """Forget what a broker stated: it has started again, and states all anew."""
        self._touched |= self.gathered.forget(broker)

    def use(self, tree: BrokerTree) -> None:
        """Go by a newer tree."""
        self.gathered.use(tree)
        for own in self._watches.values():
            for watch in own.values():
                watch.asked = replace(watch.asked, way=self._way(watch.asked.question) or ())
        self._touch_all()

    def ask(self, asker: PublicKey, question: TomographyQuestion, now: float) -> Signed:
        """Answer a broker's question; raise `Refusal` with the reason.

        The reasons: `form`, `no-way`, `k`, `cap`, `not-edge`, `not-origin`: it is about another's way.
        """
        asked = self._read(asker, question)
        is_anonymous = judge(self.gathered, asked)
        return self._answer(asked, is_anonymous, now)[0]

    def tell(self, question: TomographyQuestion, now: float) -> Signed:
        """Answer somebody without a name; raise `Refusal` as `ask`, and with `exact` (`check_coarse`).

        That nobody is named moves nothing: brokers state no more for it, and how long the answer holds says
        nothing of what they have stated.
        """
        check_coarse(question, self.gathered)
        asked = self._read(question.origin, question)
        is_anonymous = judge(self.gathered, asked)
        return answered(self._seed, TomographyAnswer(question, is_anonymous, int(now + self._terms.valid)))

    def watch(self, asker: PublicKey, number: int, question: TomographyQuestion, now: float) -> Signed:
        """Answer now, and again by `advance` whenever the answer changes or is over; refuse as `ask` does.

        Whoever watches with sources of its own would show the filter: such are counted together, as they will
        stand when all that hear yes have done so (`joint_judgement.py`). At first it is judged alone, unless
        a yes that the asker has says as much. Sources count until the broker states in a later epoch: whoever
        does not show the filter by then watches anew.
        """
        asked = self._read(asker, question)
        watches = self._watches.get(asker, {})
        if number not in watches and (len(watches) >= MAX_WATCHES_EACH or self.watches >= MAX_WATCHES):
            raise Refusal("quota")
        told = [watch.asked for watch in watches.values() if watch.is_anonymous]
        is_anonymous = judge(self.gathered, asked) or any(follows(one, True, asked) for one in told)
        self.unwatch(asker, number)
        signed, renewed_at = self._answer(asked, is_anonymous, now)
        epoch = max(self._calendar.epoch(now), self.gathered.epoch(question.origin))
        self._watches.setdefault(asker, {})[number] = _Watch(asked, epoch, is_anonymous, renewed_at)
        self.watches += 1
        self._touch(asked)
        return signed

    def unwatch(self, asker: PublicKey, number: int) -> None:
        """Tell an asker no more about one question; nothing happens if there is no such watch."""
        watches = self._watches.get(asker, {})
        if (watch := watches.pop(number, None)) is not None:
            self.watches -= 1
            self._touch(watch.asked)
            if not watches:
                del self._watches[asker]

    def leave(self, asker: PublicKey) -> None:
        """Forget the watches of an asker that has gone."""
        gone = self._watches.pop(asker, {})
        self.watches -= len(gone)
        for watch in gone.values():
            self._touch(watch.asked)

    def advance(self, now: float) -> list[WatchUpdate]:
        """Forget what is over; return what watches are to be told: changes, and answers anew in time.

        That a filter is anonymous no more is told at once. That it is, when it has been for `settle` seconds;
        to all at once who are counted together.
        """
        topics = self.gathered.expire(now) | self._touched
        self._touched = set()
        every = [
            (asker, number, watch)
            for asker, watches in self._watches.items()
            for number, watch in watches.items()
        ]
        topics |= {one.asked.filter.topic for *_, one in every if _due(one, self._terms.settle) <= now}
        judged = [item for item in every if item[2].asked.filter.topic in topics]
        anonymous = self._judge([watch for *_, watch in judged])
        _rise_together(anonymous, now)
        standing = set(map(id, anonymous))
        return [
            WatchUpdate(asker, number, signed)
            for asker, number, watch in judged
            if (signed := self._renew(watch, id(watch) in standing, now)) is not None
        ]

    def deadline(self) -> float:
        """Return when `advance` is due: at once (0) after statements; infinity if never."""
        if self._touched:
            return 0.0
        dues = (_due(watch, self._terms.settle) for own in self._watches.values() for watch in own.values())
        return min(self.gathered.deadline(), min(dues, default=float("inf")))

    def _judge(self, watches: list[_Watch]) -> list[_Watch]:
        """Return those that are anonymous: who has heard so, without who has not yet; these, with all."""
        told = [watch for watch in watches if watch.is_anonymous]
        stand = self._together(told)
        waiting = [watch for watch in watches if not watch.is_anonymous]
        with_all = self._together([*stand, *waiting])
        return [*stand, *(watch for watch in with_all if not watch.is_anonymous)]

    def _together(self, watches: list[_Watch]) -> list[_Watch]:
        said = judge_together(self.gathered, [self._now(watch) for watch in watches])
        return [watch for watch, is_anonymous in zip(watches, said, strict=True) if is_anonymous]

    def _now(self, watch: _Watch) -> ComparableQuestion:
        """Return what is asked, without sources under names of an epoch gone by: they would count twice."""
        asked = watch.asked
        if watch.epoch >= self.gathered.epoch(asked.question.origin) or not asked.question.sources:
            return asked
        return replace(asked, question=msgspec.structs.replace(asked.question, sources=()))

    def _renew(self, watch: _Watch, is_anonymous: bool, now: float) -> Signed | None:
        if is_anonymous and watch.better_since is not None:
            is_anonymous = now >= watch.better_since + self._terms.settle
        else:
            watch.better_since = None
        if is_anonymous == watch.is_anonymous and now < watch.renewed_at:
            return None
        signed, watch.renewed_at = self._answer(watch.asked, is_anonymous, now)
        watch.is_anonymous = is_anonymous
        if is_anonymous:
            watch.better_since = None
        return signed

    def _answer(self, asked: ComparableQuestion, is_anonymous: bool, now: float) -> tuple[Signed, float]:
        until = min(now + self._terms.valid, self.gathered.until(asked.filter.topic))
        if self.largest.ask(asked.question.k, now) and not is_anonymous:
            until = now + RESTATED_WITHIN  # brokers have not been told yet to state so many
        until = max(float(int(until)), int(now) + 1.0)
        signed = answered(self._seed, TomographyAnswer(asked.question, is_anonymous, int(until)))
        return signed, until - min(RENEWED_AHEAD, (until - now) / 2) if is_anonymous else until

    def _read(self, asker: PublicKey, question: TomographyQuestion) -> ComparableQuestion:
        if asker != question.origin:
            raise Refusal("not-origin")
        try:
            given = outside(question.filter)
        except DecodeError:
            raise Refusal("form") from None
        way = self._way(question)
        if way is None:
            raise Refusal("no-way")
        return ComparableQuestion(question, given, way)

    def _way(self, question: TomographyQuestion) -> tuple[PublicKey, ...] | None:
        return between(self.gathered.tree, question.origin, question.target)

    def _touch(self, asked: ComparableQuestion) -> None:
        """Those who watch with sources of their own are counted together: one comes or goes."""
        if asked.question.sources:
            self._touched.add(asked.filter.topic)

    def _touch_all(self) -> None:
        for own in self._watches.values():
            self._touched.update(watch.asked.filter.topic for watch in own.values())


def _rise_together(anonymous: list[_Watch], now: float) -> None:
    """Note since when filters have been anonymous again: the last who came begins it for all."""
    began: dict[Filter, float] = {}
    rising = [watch for watch in anonymous if not watch.is_anonymous]
    for watch in rising:
        since = now if watch.better_since is None else watch.better_since
        began[watch.asked.filter] = max(since, began.get(watch.asked.filter, since))
    for watch in rising:
        watch.better_since = began[watch.asked.filter]


def _due(watch: _Watch, settle: float) -> float:
    if watch.better_since is None:
        return watch.renewed_at
    return min(watch.renewed_at, watch.better_since + settle)
