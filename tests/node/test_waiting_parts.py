"""Parts in any order, doubled, mixed, lost, with kills between: a message is shown once, whole, or not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts_reader import AUTHOR, SECRETS, Reader, payload

from hushcast_local.inbox_records import PART
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.parts import parts_of


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
async def test_whatever_comes_of_some_messages_each_is_shown_once_or_not_at_all(data: st.DataObject) -> None:
    reader = Reader()
    wholes = [reader.whole(number) for number in range(3)]
    sent: list[tuple[int, int, Message]] = []
    for number, whole in enumerate(wholes):
        for later in (0, 1):  # what was sealed anew is another message, and the same part
            parts = reader.parts(whole, SECRETS[number], later)
            sent += [(number, place, part) for place, part in enumerate(parts)]
    order = data.draw(st.permutations(sent))
    order = order[: data.draw(st.integers(0, len(order)))]
    kills = data.draw(st.sets(st.integers(0, 50), max_size=8))
    for at, (_, _, part) in enumerate(order):
        if at in kills:
            await reader.die_within(part, data.draw(st.integers(0, 2)))
        await reader.take(part)
    came = {(number, place) for number, place, _ in order}
    complete = {
        number for number in range(3) if all((number, at) in came for at in range(parts_of(wholes[number])))
    }
    assert sorted(await reader.shown()) == sorted(payload(number) for number in complete)
    assert len(await reader.store.scan(PART)) == sum(number not in complete for number, _ in came)


async def test_the_condition_and_the_author_are_the_wholes() -> None:
    reader = Reader()
    for number, kind in enumerate(("small", "big")):
        for part in reader.parts(reader.whole(number, kind, AUTHOR), SECRETS[number]):
            await reader.take(part)
    assert await reader.shown() == [payload(1)]
    assert await reader.authors() == [AUTHOR.public()]
    assert reader.counters["messages_excess"] == 1


async def test_a_whole_that_came_in_one_piece_or_by_other_parts_is_not_shown_again() -> None:
    reader = Reader()
    whole = reader.whole(0)
    for part in [*reader.parts(whole, SECRETS[0]), whole, *reader.parts(whole, SECRETS[1], 3)]:
        await reader.take(part)
    assert await reader.shown() == [payload(0)]
    assert not await reader.store.scan(PART)


async def test_what_waits_has_an_end_which_is_told() -> None:
    reader = Reader()
    parts = reader.parts(reader.whole(0), SECRETS[0])
    for part in parts[1:]:
        await reader.take(part)
    listener = reader.subscription.inbox.listen()
    await reader.subscription.lapse(reader.day)
    assert listener.lost() == 0
    await reader.subscription.lapse(reader.day + 1)
    assert listener.lost() == 1
    await reader.take(parts[0])
    for part in reader.parts(reader.whole(1), SECRETS[1]):
        await reader.take(part)
    assert await reader.shown() == [], "its day is forgotten, and so are the ids by which it would be known"
    assert not await reader.store.scan(PART)
