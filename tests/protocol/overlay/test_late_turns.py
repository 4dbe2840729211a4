"""Whose turn it is to go late, and to which next hops."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import one_step

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay import late_turns
from hushcast_protocol.overlay.late_turns import MAX_HOPS_A_TURN, MAX_LATE_COPIES, LateTurns

ONE, TWO = Hop(b"1" * 33), Hop(b"2" * 33)


def hop(number: int) -> Hop:
    return Hop(number.to_bytes(33, "big"))


def drained(turns: LateTurns, now: float) -> list[bytes]:
    """Give all that are due their turns; return whose they were."""
    went = []
    while (turn := turns.next(now)) is not None:
        went.append(turn[0])
    return went


def test_a_drop_goes_once_to_all_hops_that_it_is_due_for() -> None:
    turns = LateTurns()
    turns.add([b"a", b"b"], ONE, 2.0)
    turns.add([b"a"], ONE, 1.0)  # again, of another lease
    turns.add([b"a"], TWO, 3.0)
    assert turns.deadline() == 2.0
    assert turns.next(1.5) is None
    assert turns.next(2.0) == (b"a", [ONE])
    assert turns.next(3.0) == (b"b", [ONE])
    assert turns.next(3.0) == (b"a", [TWO])
    assert turns.next(9.0) is None
    assert len(turns) == 0


def test_who_had_the_fewest_turns_goes_first_and_then_who_is_due_longest() -> None:
    turns = LateTurns()
    for moment in range(20):
        turns.add([b"his"], hop(moment), float(moment))
        assert drained(turns, moment) == [b"his"]
    turns.add([b"his"], ONE, 30.0)
    turns.add([b"c", b"a"], ONE, 31.0)
    turns.add([b"b"], ONE, 30.5)
    assert drained(turns, 40.0) == [b"b", b"c", b"a", b"his"]


def test_what_is_forgotten_has_no_turn() -> None:
    turns = LateTurns()
    turns.add([b"a", b"b"], ONE, 1.0)
    turns.forget(b"a")
    turns.forget(b"a")
    assert drained(turns, 1.0) == [b"b"]
    turns.add([b"b"], TWO, 2.0)
    assert turns.next(1.0) is None
    turns.add([b"c"], TWO, 2.0)
    turns.forget(b"b")
    turns.add([b"b"], TWO, 4.0)  # it waits anew, and so had no turn
    assert drained(turns, 2.0) == [b"c"]
    assert turns.deadline() == 4.0
    assert drained(turns, 4.0) == [b"b"]


def test_one_drop_takes_no_more_hops_than_a_turn_may_have() -> None:
    turns = LateTurns()
    for number in range(2 * MAX_HOPS_A_TURN):
        turns.add([b"a"], hop(number), 1.0)
    assert turns.next(1.0) == (b"a", [hop(number) for number in range(MAX_HOPS_A_TURN)])


def test_where_there_is_no_room_who_had_more_turns_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_turns, "MAX_LATE_COPIES", 2)
    turns = LateTurns()
    turns.add([b"his"], ONE, 0.0)
    drained(turns, 0.0)
    turns.add([b"his"], ONE, 1.0)
    turns.add([b"his"], TWO, 1.0)
    turns.add([b"a"], ONE, 1.0)
    assert drained(turns, 0.5) == []
    turns.add([b"a"], ONE, 1.0)  # what is not due yet gives way to nobody
    assert turns.next(1.0) == (b"his", [ONE, TWO])
    turns.add([b"his"], ONE, 1.0)
    turns.add([b"his", b"b"], TWO, 2.0)
    assert turns.next(1.0) == (b"his", [ONE])


def test_steps_and_room_are_bounded_when_all_is_full() -> None:
    """As many drops as can wait, and leases for the last of them to ever new next hops."""
    keys = [number.to_bytes(40, "big") for number in range(28_000)]
    tracemalloc.start()
    turns = LateTurns()
    for number in range(300):
        with one_step():
            turns.add(keys[(begin := number * 997 % 27_000) : begin + 1024], hop(number), number / 40)
        with one_step():
            for _ in range(3):
                turns.next(number / 40)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert MAX_LATE_COPIES - 3 * MAX_HOPS_A_TURN <= turns._copies <= MAX_LATE_COPIES
    assert size < 15_000_000
    with one_step():
        for key in keys[:1024]:
            turns.forget(key)
    for key in keys:
        turns.forget(key)
    assert turns._copies == len(turns) == sum(map(len, turns._due)) == len(turns._had) == 0


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "next", "forget"]),
            st.sets(st.sampled_from([b"a", b"b", b"c"]), min_size=1),
            st.integers(0, 3),
            st.integers(0, 4),
        )
    )
)
def test_each_goes_where_it_was_to_go_and_not_before(
    steps: list[tuple[str, set[bytes], int, int]],
) -> None:
    turns, now, due = LateTurns(), 0.0, dict[tuple[bytes, Hop], float]()
    for step, keys, number, passed in steps:
        now += passed
        if step == "add":
            turns.add(sorted(keys), hop(number), now + number)
            for key in keys:
                due.setdefault((key, hop(number)), now + number)
        elif step == "forget":
            for key in keys:
                turns.forget(key)
            due = {pair: moment for pair, moment in due.items() if pair[0] not in keys}
        elif (turn := turns.next(now)) is not None:
            assert turn[1]
            for one in turn[1]:
                assert due.pop((turn[0], one)) <= now
        assert len(turns) == len({key for key, _ in due})
        assert turns._copies == len(due)
    for _ in due.copy():
        if (turn := turns.next(now + 9)) is not None:
            for one in turn[1]:
                del due[turn[0], one]
    assert due == {}
