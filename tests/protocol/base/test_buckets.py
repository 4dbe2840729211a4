"""Token buckets: never more than the rate and the burst, and never less to who stays below."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.buckets import TokenBucket

rates = st.floats(0.1, 1000)
bursts = st.floats(1, 1000)
gaps = st.lists(st.floats(0, 100), max_size=200)


@given(rates, bursts, gaps)
def test_never_more_than_burst_and_rate(rate: float, burst: float, gaps: list[float]) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    now = taken = 0.0
    for gap in gaps:
        now += gap
        taken += bucket.take(now)
    assert taken <= burst + rate * now + 1e-6


@given(rates, bursts, st.lists(st.floats(1.001, 10), max_size=200))
def test_who_stays_below_the_rate_is_always_served(rate: float, burst: float, gaps: list[float]) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    now = 0.0
    for gap in gaps:
        now += gap / rate
        assert bucket.take(now)


def test_a_burst_comes_after_a_quiet_time_and_not_before() -> None:
    bucket = TokenBucket(2.0, 10.0, 100.0)
    assert [bucket.take(100.0) for _ in range(11)] == [True] * 10 + [False]
    assert [bucket.take(101.0) for _ in range(3)] == [True, True, False]
    assert [bucket.take(1000.0) for _ in range(11)] == [True] * 10 + [False]
    assert not bucket.take(1000.0, 0.5)


def test_a_clock_that_is_set_back_is_no_gift_and_no_end() -> None:
    bucket = TokenBucket(1.0, 2.0, 1000.0)
    assert [bucket.take(10.0) for _ in range(3)] == [True, True, False]
    assert bucket.take(11.0)
