"""Which drops wait for a route, and which give way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.overlay import late_routes
from hushcast_protocol.overlay.late_routes import WAIT, LateRoutes


def wait(routes: LateRoutes, key: bytes, now: float = 0.0, size: int = 10) -> list[bytes]:
    return routes.wait(key, (b"topic", b"only " + key), size, now)


def test_they_wait_until_they_have_a_route() -> None:
    routes = LateRoutes()
    for key in (b"a", b"b", b"c"):
        assert wait(routes, key) == []
    assert routes.take([b"other"]) == []
    assert routes.take([b"other", b"only b"]) == [b"b"]
    assert len(routes) == 2
    assert routes.take([b"only c", b"topic"]) == [b"c", b"a"]
    assert len(routes) == 0
    assert routes.take([b"topic"]) == []


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
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["wait", "take", "lapse"]), st.integers(1, 50)))
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
            elif step == "take":
                gone = routes.take([b"only %d" % (number - 1)] if size % 3 else [b"topic"])
            else:
                gone = routes.lapse(now)
            for key in gone:
                del held[key]
            assert len(routes) == len(held) <= 5
            assert sum(held.values()) <= 100
