"""Arrivals: which batch a provider answers next, where they come in any order and some never come.

Each is answered right after the one before it. If that one does not come, the provider waits for a while,
and then goes on behind it: subscribers would see a gap in any case, and nothing more is gained by waiting.
"""

from __future__ import annotations

from collections.abc import Container

from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, check_next

MAX_HELD = 8  # batches that wait for one before them, or for their weights; 64 MiB on disk


class BatchArrivals:
    """Batches that came and were not answered, and the last one that was.

    Moved by calls alone; `now` is in seconds of any clock that never goes back.
    """

    def __init__(self, last: Batch | None, patience: float) -> None:
        """`patience` is for how many seconds a batch waits for one before it that did not come."""
        self.last = last
        self._patience = patience
        self._held: dict[int, tuple[Batch, float]] = {}

    @property
    def held(self) -> list[Batch]:
        """Those that wait, in their order."""
        return [self._held[number][0] for number in sorted(self._held)]

    @property
    def is_full(self) -> bool:
        """Whether one has to be answered, or forgotten, before another is taken."""
        return len(self._held) >= MAX_HELD

    def check(self, batch: Batch) -> None:
        """Raise `InvalidAnswer` unless a batch may come behind the last one that was answered.

        `OLD_ROOT` is also said of one that waits already.
        """
        if (waiting := self._held.get(batch.body.number)) is not None:
            raise InvalidAnswer(
                AnswerProblem.OLD_ROOT if waiting[0].digest == batch.digest else AnswerProblem.FORKED,
            )
        if self.last is not None:
            _check_behind(batch, self.last)

    def take(self, batch: Batch, now: float) -> None:
        """Hold a batch; raise `InvalidAnswer` as `check` does."""
        self.check(batch)
        self._held[batch.body.number] = (batch, now)

    def forget(self, batch: Batch) -> None:
        """Hold a batch no more."""
        self._held.pop(batch.body.number, None)

    def next(self, tables: Container[bytes], now: float) -> Batch | None:
        """Return the batch to answer now, `None` where one is waited for; `tables` are there, by digest."""
        ready = self._ready(tables)
        if ready is None:
            return None
        batch, came = ready
        is_due = now >= came + self._patience or self.is_full
        return batch if is_due or not self.skipped(batch) else None

    def deadline(self, tables: Container[bytes]) -> float | None:
        """Return when `next` returns a batch though nothing else comes."""
        ready = self._ready(tables)
        return ready[1] + self._patience if ready is not None else None

    def skipped(self, batch: Batch) -> range:
        """Return the numbers of the batches that are missing if this one is answered next."""
        first = self.last.body.number + 1 if self.last is not None else min(self._held)
        return range(first, batch.body.number)

    def done(self, batch: Batch) -> list[Batch]:
        """Note that a batch was answered; return all that need not be held any more."""
        self.last = batch
        gone = [one for one in self.held if one.body.number <= batch.body.number]
        for one in gone:
            self.forget(one)
        return gone

    def _ready(self, tables: Container[bytes]) -> tuple[Batch, float] | None:
        for number in sorted(self._held):
            if self._held[number][0].body.table in tables:
                return self._held[number]
        return None


def _check_behind(batch: Batch, last: Batch) -> None:
    """Check a batch as `check_next` does, and let others be missing between the two."""
    try:
        check_next(batch, last)
    except InvalidAnswer as error:
        if error.problem is not AnswerProblem.MISSING_INTERVAL:
            raise
        body = batch.body
        if body.version == last.body.version and body.table != last.body.table:
            raise InvalidAnswer(AnswerProblem.FORKED) from None
        if body.start < last.end:
            raise InvalidAnswer(AnswerProblem.BACK_IN_TIME) from None
        if body.version < last.body.version:
            raise InvalidAnswer(AnswerProblem.WEIGHTS) from None
