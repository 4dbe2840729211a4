"""What an owner's next batch is."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from spatial_world import OWNER, message

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import MAX_INTERVAL, Batch, BatchInterval, check_batch, make_batch
from hushcast_protocol.spatial.batch_plan import (
    fitting,
    interval_due,
    is_to_weigh,
    next_due,
    weighable,
)
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES, MAX_PAYLOAD
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.weight_table import sign_table

TABLE = sign_table(OWNER, 1, {}, 1, chord(100))


def signed(interval: BatchInterval) -> Batch:
    return check_batch(make_batch(OWNER, interval, TABLE, 4, []).signed, OWNER.public())


@given(st.integers(1, 1000), st.integers(0, 10_000), st.lists(st.integers(-50, 3000), max_size=20))
def test_no_second_is_of_two_intervals_or_of_none(seconds: int, began: int, steps: list[int]) -> None:
    now, previous = began, None
    for step in steps:
        now = max(now + step, 0)
        due = interval_due(began, seconds, previous, now)
        assert (due is None) == (now < next_due(began, seconds, previous))
        if due is None:
            continue
        assert due.start == (began - began % seconds if previous is None else previous.end)
        previous = signed(due)
        assert previous.end % seconds == 0
        assert now - seconds < previous.end <= now


def test_what_is_longer_than_any_interval_begins_later() -> None:
    previous = signed(BatchInterval(0, 300, None))
    due = interval_due(0, 300, previous, 3 * MAX_INTERVAL)
    assert due is not None
    assert (due.start, due.seconds) == (2 * MAX_INTERVAL, MAX_INTERVAL)


def test_a_batch_takes_what_it_has_room_for() -> None:
    large = [replace(message(Random(at), 1, f"{at:04}"), payload=bytes(MAX_PAYLOAD)) for at in range(200)]
    taken = list(fitting(large))
    assert 120 < len(taken) < 200
    encode(make_batch(OWNER, BatchInterval(0, 300, None), TABLE, 4, taken))
    one = message(Random(1), 1, "1")
    assert len(list(fitting(replace(one, id=str(at)) for at in range(MAX_MESSAGES + 5)))) == MAX_MESSAGES
    wide = (
        replace(one, id=str(at), words=tuple(f"{at:04}-{word:04}" for word in range(4096)))
        for at in range(70)
    )
    assert len(list(fitting(wide))) == 64


def test_words_are_weighed_with_twice_as_many_messages() -> None:
    weighed, times = 0, []
    for said in range(1, 100_000):
        if is_to_weigh(said, weighed):
            weighed = said
            times.append(said)
    assert times[:6] == [1, 2, 4, 8, 16, 32]
    assert all(after - one <= MAX_MESSAGES for one, after in pairwise(times))
    assert not is_to_weigh(0, 0)
    assert len(weighable([("a",)] * (MAX_MESSAGES + 3))) == MAX_MESSAGES
