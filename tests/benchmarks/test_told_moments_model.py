"""The model of what the moments show at which next days are told."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.told_moments import FIRST, drawn_anew, drawn_once, named
from hushcast_protocol.base.epochs import EPOCHS_A_DAY


def test_who_is_there_all_day_tells_at_its_first_moment() -> None:
    always = np.ones((1, EPOCHS_A_DAY), bool)
    assert drawn_anew(always) == pytest.approx(FIRST[None, :])
    assert FIRST.sum() == pytest.approx(1.0)


def test_who_comes_late_tells_later_where_moments_are_drawn_anew_and_seldom_at_one() -> None:
    late = np.arange(EPOCHS_A_DAY)[None, :] >= EPOCHS_A_DAY // 2
    assert drawn_anew(late).sum() == pytest.approx(1.0, abs=0.01)
    assert drawn_once(late).sum() < 0.5
    assert drawn_anew(late)[0, : EPOCHS_A_DAY // 2].sum() == 0


@pytest.mark.slow
def test_by_all_that_moments_show_nearly_half_are_named_within_two_weeks() -> None:
    assert named(drawn_anew, is_when_back=True, trials=25)[14] > 0.3
