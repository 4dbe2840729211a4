"""What an owner's next batch is: its interval, its messages, and whether words are weighed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import MAX_BATCH, MAX_INTERVAL, Batch, BatchInterval
from hushcast_protocol.spatial.keywords import Keywords
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES, LocatedMessage
from hushcast_protocol.spatial.word_pages import MAX_PAGES, PAGE

_HEAD = 5120  # bytes of a batch without its messages; some 300, and 200 for each hand-over of a key
MAX_BATCH_WORDS = PAGE * MAX_PAGES  # different words, of a batch as of a table


def interval_due(began: int, seconds: int, previous: Batch | None, now: int) -> BatchInterval | None:
    """Return the interval that is over and has no batch, `None` while there is none.

    Intervals end at multiples of `seconds`. All that passed since the last batch, or since the owner `began`,
    is one: so time that the owner was away for is part of the next batch, and no second is of none. Only what
    is longer than any interval begins later.
    """
    begin = began - began % seconds if previous is None else previous.end
    end = now - now % seconds
    if end <= begin:
        return None
    begin = max(begin, end - MAX_INTERVAL)
    return BatchInterval(begin, end - begin, previous)


def next_due(began: int, seconds: int, previous: Batch | None) -> int:
    """Return the moment from which on `interval_due` has one."""
    begin = began if previous is None else previous.end
    return (begin // seconds + 1) * seconds


def fitting(messages: Iterable[LocatedMessage]) -> Iterator[LocatedMessage]:
    """Yield the first messages, as many as a batch has room for."""
    size, words = _HEAD, set[str]()
    for count, one in enumerate(messages):
        size += len(encode(one))
        words.update(one.words)
        if count == MAX_MESSAGES or size > MAX_BATCH or len(words) > MAX_BATCH_WORDS:
            return
        yield one


def is_to_weigh(said: int, weighed: int) -> bool:
    """Tell whether words are to be weighed anew: `said` messages there were, `weighed` at the last table.

    That is with the first message, with twice as many each time, and later with each `MAX_MESSAGES` more: a
    feed's first words soon tell little of it, and every table has to go to everybody who blurs.
    """
    return said - weighed >= min(max(weighed, 1), MAX_MESSAGES)


def weighable(newest_first: Iterable[Keywords]) -> list[Keywords]:
    """Return the words of the newest messages, as many as a table has room for."""
    found: list[Keywords] = []
    words = set[str]()
    for one in newest_first:
        words.update(one)
        if len(found) == MAX_MESSAGES or len(words) > MAX_BATCH_WORDS:
            break
        found.append(one)
    return found
