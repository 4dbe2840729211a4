"""A broker's cache: answers that it has, and what follows from them, until they are over."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion, follows, is_transitive
from hushcast_protocol.content.topics import Topic

MAX_CACHED = 4096  # answers of a broker, some 1 kB each; at one more the oldest goes
MAX_LOOKED_AT = 512  # answers about other filters of the topic that are looked at for one question: some 1 ms

_About = tuple[PublicKey, AnonymityCondition, Topic]


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """What a cache says to a question, until when, and whether the answer it has was to another one."""

    is_anonymous: bool
    until: float
    is_derived: bool


@dataclass(slots=True)
class _Held:
    asked: ComparableQuestion
    is_anonymous: bool
    until: float


@dataclass(slots=True)
class _Answers:
    """Of one origin, condition and topic: by filter, the newest last."""

    of: dict[Filter, list[_Held]] = field(default_factory=dict)


class AnswerCache:
    """Answers of the service's. `now` is Unix time."""

    def __init__(self, transitive: bool = True) -> None:
        """`transitive`: whether what follows by covering is used, where it holds."""
        self._transitive = transitive
        self._answers: dict[_About, _Answers] = {}
        self._order: OrderedDict[int, _Held] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def put(self, asked: ComparableQuestion, is_anonymous: bool, until: float) -> None:
        """Keep an answer; an earlier one to the same question goes."""
        held = _Held(asked, is_anonymous, until)
        self.drop(asked)
        answers = self._answers.setdefault(_about(asked), _Answers())
        answers.of.setdefault(asked.filter, []).append(held)
        self._order[id(held)] = held
        if len(self._order) > MAX_CACHED:
            self._forget(next(iter(self._order.values())))

    def drop(self, asked: ComparableQuestion) -> None:
        """Know no answer to just this question any more."""
        answers = self._answers.get(_about(asked), _Answers())
        for held in tuple(answers.of.get(asked.filter, ())):
            if held.asked.question == asked.question:
                self._forget(held)

    def find(self, asked: ComparableQuestion, now: float) -> CachedAnswer | None:
        """Return what the answers here say to a question, or None if they say nothing."""
        answers = self._answers.get(_about(asked))
        if answers is None:
            return None
        found = self._first(answers.of.get(asked.filter, ()), asked, now)
        if found is None and self._transitive and is_transitive(asked.question.condition):
            others = [held for one in tuple(answers.of) if one != asked.filter for held in answers.of[one]]
            found = self._first(others[-MAX_LOOKED_AT:], asked, now)
        return found

    def _first(
        self, held: list[_Held] | tuple[()], asked: ComparableQuestion, now: float
    ) -> CachedAnswer | None:
        for one in reversed(tuple(held)):
            if one.until <= now:
                self._forget(one)
                continue
            said = follows(one.asked, one.is_anonymous, asked)
            if said is not None:
                return CachedAnswer(said, one.until, one.asked.question != asked.question)
        return None

    def _forget(self, held: _Held) -> None:
        del self._order[id(held)]
        answers = self._answers[_about(held.asked)]
        same = answers.of[held.asked.filter]
        same.remove(held)
        if not same:
            del answers.of[held.asked.filter]
        if not answers.of:
            del self._answers[_about(held.asked)]


def _about(asked: ComparableQuestion) -> _About:
    return asked.question.origin, asked.question.condition, asked.filter.topic
