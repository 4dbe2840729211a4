"""The order of what comes from other gateways: by their numbers, whatever order the network brings it in.

What comes before its turn waits for what lacks, some seconds at most, then goes on without it. What comes
after its turn is *late*: something newer of its topic was handed out, so it may neither replace nor delete
what is retained. Of two gateways that publish to one topic neither is before the other: what comes first is.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.envelope import Place

MAX_HELD = 256  # messages of one stream that wait for one that lacks; with more it is not waited for
MAX_HELD_OUT_OF_ORDER = 16 * 1024 * 1024  # bytes of all that wait, each alias its share; 60 of the largest
NEW_WAIT = 15.0  # seconds that the first of a stream waits at most: what lacks may have gone before we read
MAX_MARKS = 10_000  # streams whose last numbers are known; 4 MB. Of the alias with most the oldest goes

T = TypeVar("T")


class Stream(NamedTuple):
    """The messages of a topic from one source."""

    alias: str
    label: bytes
    """16 bytes that stand for topic and source."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "Stream(...)"


class Mark(NamedTuple):
    """How far a stream is: the epoch and number of the last message that was handed out."""

    epoch: int
    number: int

    def precedes(self, following: Mark) -> bool:
        """Tell whether nothing lacks between this and one that is above it.

        In another epoch numbers go on where the gateway knew to be: the same again, or lower ones, are new.
        """
        if following.epoch == self.epoch:
            return following.number == self.number + 1
        return following.number <= self.number + 1


@dataclass(frozen=True)
class ReleasedArrival(Generic[T]):
    """A message whose turn it is, or was."""

    stream: Stream
    mark: Mark
    item: T
    is_late: bool


@dataclass
class _Waiting(Generic[T]):
    """What came of a stream before its turn, with size and arrival, and how long it waits for what lacks."""

    wait: float
    messages: dict[Mark, tuple[T, int, float]] = field(default_factory=dict)


def stream_of(alias: str, topic: str, source: bytes) -> Stream:
    """Return what a message belongs to; whoever publishes may write any source under any topic."""
    return Stream(alias, digest(Domain.PLACE_MARK, topic.encode(), source, size=LABEL))


class ArrivalOrder(Generic[T]):
    """All streams. Times are seconds of any clock that does not go back."""

    def __init__(self, wait: float) -> None:
        """`wait` is how long something that lacks is waited for; 0: nothing waits."""
        self._wait = wait
        self._marks: dict[str, OrderedDict[bytes, Mark]] = {}
        self._count = 0
        self._waiting: dict[Stream, _Waiting[T]] = {}
        self._bytes = Shares(MAX_HELD_OUT_OF_ORDER)
        self._deadlines: list[tuple[float, Stream]] = []  # a stream may stand there more than once
        self.forgotten: list[Stream] = []
        """Streams whose marks went for others, until the caller clears it."""

    @property
    def held(self) -> int:
        """Messages that wait for others."""
        return sum(len(one.messages) for one in self._waiting.values())

    @property
    def next_due(self) -> float | None:
        """When `due` may have something; `None` for never."""
        return self._deadlines[0][0] if self._deadlines else None

    def restore(self, stream: Stream, mark: Mark) -> None:
        """Take up what an earlier run had handed out."""
        self._move(stream, mark)

    def came(
        self, stream: Stream, place: Place, item: T, size: int, now: float, waits: bool = True
    ) -> list[ReleasedArrival[T]]:
        """Take a message of so many bytes; return what is handed out now, in order.

        Not `waits`: of this stream some messages are for others alone, and nobody can tell what lacks.
        """
        at = Mark(place.epoch, place.number)
        mark = self._mark(stream)
        waiting = self._waiting.get(stream)
        is_known = waiting is not None and at in waiting.messages
        if is_known or (mark is not None and at <= mark):
            return [ReleasedArrival(stream, at, item, True)]
        if not (self._wait and waits) or (place.is_alone if mark is None else mark.precedes(at)):
            self._move(stream, at)
            return [ReleasedArrival(stream, at, item, False), *self._following(stream)]
        if waiting is None:
            wait = self._wait if mark is not None else min(self._wait, NEW_WAIT)
            waiting = self._waiting[stream] = _Waiting(wait)
        if len(waiting.messages) < MAX_HELD and self._bytes.may_take(stream.alias, size):
            if not waiting.messages:
                heapq.heappush(self._deadlines, (now + waiting.wait, stream))
            self._bytes.take(stream.alias, size)
            waiting.messages[at] = item, size, now
            return []
        self._bytes.take(stream.alias, size)
        waiting.messages[at] = item, size, now
        return list(self._all_of(stream))

    def due(self, now: float) -> list[ReleasedArrival[T]]:
        """Return what has waited long enough of one stream; call it again until there is nothing."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, stream = heapq.heappop(self._deadlines)
            waiting = self._waiting.get(stream)
            if waiting is None:
                continue
            oldest = min(came for _, _, came in waiting.messages.values())
            if oldest + waiting.wait > now:
                heapq.heappush(self._deadlines, (oldest + waiting.wait, stream))
                continue
            released: list[ReleasedArrival[T]] = []
            while stream in self._waiting and any(
                came + waiting.wait <= now for _, _, came in waiting.messages.values()
            ):
                released += [self._lowest(stream), *self._following(stream)]
            if stream in self._waiting:
                oldest = min(came for _, _, came in waiting.messages.values())
                heapq.heappush(self._deadlines, (oldest + waiting.wait, stream))
            return released
        return []

    def _following(self, stream: Stream) -> Iterator[ReleasedArrival[T]]:
        """Release what waited for nothing else than what was just released."""
        while (waiting := self._waiting.get(stream)) is not None:
            mark, lowest = self._mark(stream), min(waiting.messages)
            if mark is not None and lowest > mark and not mark.precedes(lowest):
                return
            yield self._lowest(stream)

    def _all_of(self, stream: Stream) -> Iterator[ReleasedArrival[T]]:
        while stream in self._waiting:
            yield self._lowest(stream)

    def _lowest(self, stream: Stream) -> ReleasedArrival[T]:
        waiting = self._waiting[stream]
        lowest = min(waiting.messages)
        item, size, _ = waiting.messages.pop(lowest)
        self._bytes.give_back(stream.alias, size)
        if not waiting.messages:
            del self._waiting[stream]
        mark = self._mark(stream)
        is_late = mark is not None and lowest <= mark  # another epoch began meanwhile
        if not is_late:
            self._move(stream, lowest)
        return ReleasedArrival(stream, lowest, item, is_late)

    def _mark(self, stream: Stream) -> Mark | None:
        marks = self._marks.get(stream.alias)
        return None if marks is None else marks.get(stream.label)

    def _move(self, stream: Stream, mark: Mark) -> None:
        marks = self._marks.setdefault(stream.alias, OrderedDict())
        self._count += stream.label not in marks
        marks[stream.label] = mark
        marks.move_to_end(stream.label)
        if self._count > MAX_MARKS:
            alias = max(self._marks, key=lambda one: len(self._marks[one]))
            label, _ = self._marks[alias].popitem(last=False)
            self._count -= 1
            self.forgotten.append(Stream(alias, label))
