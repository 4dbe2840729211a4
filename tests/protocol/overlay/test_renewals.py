"""The moments of renewals: always in time, and none tells how long it has been waited for."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from hushcast_protocol.overlay.renewals import LATEST, LOOKS, next_renewal

CHANCES = [(number + 0.5) / 10_000 for number in range(10_000)]


@pytest.mark.parametrize(("begin", "end"), [(0.0, 24.0), (23.9, 24.0)])
def test_a_renewal_is_drawn_within_what_is_left(begin, end):
    moments = [next_renewal(begin, end, chance) for chance in [0.0, *CHANCES, 1 - 2**-53]]
    assert begin <= min(moments) <= max(moments) <= begin + LATEST * (end - begin) + 1e-9
    assert fmean(moments) == pytest.approx(begin + (end - begin) / LOOKS, rel=0.01)


def test_who_is_away_at_one_moment_has_others_before_the_end():
    """Away for an eighth of the time, at random: one day in some hundreds begins untold."""
    drawn = random.Random(1)
    missed = 0
    for _ in range(10_000):
        moment = 0.0
        while True:
            moment = next_renewal(moment, 24.0, drawn.random())
            if 24.0 - moment < 1 / 60:
                missed += 1
                break
            if drawn.random() > 1 / 8:
                break
    assert missed <= 10
