"""Which drops wait for a route, and which give way."""

from __future__ import annotations

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.overlay import late_routes
from hushcast_protocol.overlay.late_routes import WAIT, LateRoutes


def wait(routes: LateRoutes, key: bytes, now: float = 0.0, size: int = 10) -> list[bytes]:
    return routes.wait(key, (b"topic", b"only " + key), size, now)


def test_each_lease_finds_all_that_wait_for_it() -> None:
    routes = LateRoutes()
    for key in (b"a", b"b", b"c"):
        assert wait(routes, key) == []
    assert routes.waiting([b"other"]) == []
    for _ in range(2):
        assert routes.waiting([b"other", b"only b"]) == [b"b"]
        assert routes.waiting([b"only b", b"topic"]) == [b"b", b"a", b"c"]
    assert b"b" in routes


def test_what_waited_longest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_routes, "MAX_WAITING_SIZE", 30)
    routes = LateRoutes()
    for key in (b"a", b"b", b"c"):
        wait(routes, key)
    assert wait(routes, b"d", size=20) == [b"a", b"b"]
    assert routes.waiting([b"topic"]) == [b"c", b"d"]
    assert routes.forget_first() == b"c"
    assert routes.waiting([b"only c"]) == []


def test_a_lease_gets_those_that_came_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_routes, "MAX_LATE_A_LEASE", 2)
    routes = LateRoutes()
    for number, key in enumerate((b"a", b"b", b"c", b"d")):
        wait(routes, key, float(number))
    assert routes.waiting([b"only d", b"topic"]) == [b"c", b"d"]


def test_no_step_takes_long_when_the_store_is_full() -> None:
    """Of messages of one topic, and a lease that asks for all that each waits for, again and again."""
    routes = LateRoutes()
    count = late_routes.MAX_ELEMENTS_AWAITED // 8
    elements = tuple([b"%d" % number for number in range(8)])
    for number in range(count):
        routes.wait(b"%d" % number, elements, 10, 0.0)
    lease = elements * 128
    began = thread_time()
    assert len(routes.waiting(lease)) == late_routes.MAX_LATE_A_LEASE
    assert thread_time() - began < 0.05
    lapsed = 0
    while routes:
        began = thread_time()
        lapsed += len(routes.lapse(WAIT))
        assert thread_time() - began < 0.05
    assert lapsed == count


def test_they_lapse_in_their_order() -> None:
    routes = LateRoutes()
    wait(routes, b"a", 0.0)
    wait(routes, b"b", 10.0)
    assert routes.next_lapse() == WAIT
    assert routes.lapse(WAIT - 1) == []
    assert routes.lapse(WAIT) == [b"a"]
    assert routes.next_lapse() == WAIT + 10.0
    assert routes.lapse(WAIT + 10.0) == [b"b"]
    assert len(routes) == 0


def test_one_that_is_larger_than_the_room_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_routes, "MAX_WAITING_SIZE", 9)
    assert wait(LateRoutes(), b"a") == [b"a"]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["wait", "first", "lapse"]), st.integers(1, 50)))
)
def test_neither_number_nor_bytes_pass_their_bounds(steps: list[tuple[int, str, int]]) -> None:
    routes, now, held = LateRoutes(), 0.0, dict[bytes, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late_routes, "MAX_ELEMENTS_AWAITED", 10)
        patch.setattr(late_routes, "MAX_WAITING_SIZE", 100)
        for number, (passed, step, size) in enumerate(steps):
            now += passed
            if step == "wait":
                gone = wait(routes, b"%d" % number, now, size)
                held[b"%d" % number] = size
            elif step == "first":
                gone = [routes.forget_first()] if routes else []
            else:
                gone = routes.lapse(now)
            for key in gone:
                del held[key]
            assert len(routes) == len(held) <= 5
            assert sum(held.values()) <= 100
            assert routes.waiting([b"topic"]) == list(held)
