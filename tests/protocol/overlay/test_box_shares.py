"""The shares of boxes: the oldest of the box that takes most gives way, and small boxes lose nothing."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import one_step

from hushcast_protocol.content.messages import MAX_BODY
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.box_shares import MAX_ALL_BOXES, MAX_BOX, MAX_BOXES, SMALL_BOX, BoxShares

BODY = 1167  # bytes of the smallest body


def name(number: int) -> bytes:
    return number.to_bytes(32, "big")


def given_way(shares: BoxShares) -> list[tuple[bytes, bytes]]:
    gone = []
    while step := shares.over():
        gone += step
    return gone


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60), st.booleans()), max_size=120))
def test_within_their_bounds_nothing_gives_way_and_beyond_the_largest_does(
    moves: list[tuple[int, int, bool]],
) -> None:
    with mock.patch.multiple(box_shares, MAX_BOX=100, MAX_ALL_BOXES=200, GIVEN_AT_ONCE=1):
        shares, held = BoxShares(), {}  # type: ignore[var-annotated]
        largest = dict.fromkeys(range(4), 0)
        for place, (number, size, is_settled) in enumerate(moves):
            box, key = name(number), name(place)
            if is_settled and (waiting := shares.waiting(box)):
                shares.remove(box, waiting[0])
                held.pop(waiting[0])
                continue
            shares.add(box, key, size)
            held[key] = (number, size)
            before = {one: sum(each for of, each in held.values() if of == one) for one in largest}
            for one in largest:
                largest[one] = max(largest[one], before[one])
            for of, gone in given_way(shares):
                number_of, its = held.pop(gone)
                assert name(number_of) == of
                assert before[number_of] == max(before.values()) or before[number_of] > 100
                assert largest[number_of] > 200 // len(largest)
                before[number_of] -= its
                assert gone < min((key for key, (n, _) in held.items() if n == number_of), default=name(999))
            assert shares.size == sum(each for _, each in held.values()) <= 200
            for one in largest:
                assert shares.size_of(name(one)) == before[one] <= 100
                assert shares.waiting(name(one)) == [key for key, (n, _) in held.items() if n == one]


def full(size: int) -> BoxShares:
    """All boxes there may be, with so many bytes in each."""
    shares = BoxShares()
    for number in range(MAX_BOXES):
        for place in range(size // BODY):
            shares.add(name(number), number.to_bytes(8, "big") + place.to_bytes(8, "big"), BODY)
    return shares


def test_strangers_who_fill_a_host_take_nothing_from_boxes_that_are_small() -> None:
    shares, owner = BoxShares(), name(MAX_BOXES)
    kept = SMALL_BOX // BODY
    for place in range(kept):
        shares.add(owner, name(place), BODY)
        assert shares.over() == []
    gone = 0
    for number in range(4 * MAX_ALL_BOXES // MAX_BODY):
        box = name(number % (MAX_BOXES - 1))
        shares.add(box, b"stranger's" + name(number), MAX_BODY)
        for of, _ in given_way(shares):
            assert of != owner
            gone += 1
    assert gone > MAX_ALL_BOXES // MAX_BODY
    assert len(shares.waiting(owner)) == kept


@pytest.mark.parametrize("sizes", [(BODY, MAX_BODY), (MAX_BODY, BODY)], ids=["small", "large"])
def test_to_give_way_takes_short_steps(sizes: tuple[int, int]) -> None:
    """One message comes for all boxes, where they have taken all room with others."""
    shares, place = BoxShares(), 0
    for size in sizes:
        for _ in range(MAX_ALL_BOXES // size // MAX_BOXES + 1):
            for number in range(MAX_BOXES):
                shares.add(name(number), name(place := place + 1), size)
        steps = 0
        while shares.size > MAX_ALL_BOXES:
            with one_step():
                assert shares.over()
            steps += 1
    assert steps > 1
    assert shares.over() == []


def test_a_box_that_is_full_gives_way_itself() -> None:
    shares = BoxShares()
    for place in range(MAX_BOX // MAX_BODY):
        shares.add(name(1), name(place), MAX_BODY)
        assert shares.over() == []
    shares.add(name(1), name(999), MAX_BODY)
    assert shares.over() == [(name(1), name(0))]
    assert shares.over() == []
